//! Every message of every actor, one file each.
