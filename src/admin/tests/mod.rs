//! The interface as its users meet it, against actors that say what a test wants.
