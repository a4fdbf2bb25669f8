//! Documents in, files others read out.
