//! The store against an object store in memory, and against files.
