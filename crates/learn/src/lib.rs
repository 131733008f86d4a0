//! Private learning: the exponential mechanism for anything, models trained under noise, clusters and hot spots.
//!
//! Never here: noise or accounting of its own, files, SQL, the choice of a budget.
