//! Seeds and links in, admitted URLs out.
