//! The requirements of the RFCs that polypath implements, a test for each sentence.
//!
//! `rfc9260.tsv` lists the sentences of RFC 9260, sections 3 to 9, that contain a key word of
//! RFC 2119 (`scripts/rfc-requirements.py` prints such a list). The test for the third requirement
//! of section 5.2.1 is `rfc9260::section_5::s5_2_1_r3_...`; a test may cover several of them:
//! `s5_2_1_r3_r4_...`. For a requirement without a test, the list states the reason, or the
//! requirement whose test covers it: `= 5.1/7`. [`matrix`] writes the table and fails if a
//! requirement has neither.

#[path = "../protocol/common/mod.rs"]
#[allow(dead_code, unused_imports, reason = "shared with the protocol's tests")]
mod common;

mod bytes;
mod matrix;
mod rfc3758;
mod rfc4820;
mod rfc4895;
mod rfc5061;
mod rfc6525;
mod rfc6951;
mod rfc7496;
mod rfc7829;
mod rfc8260;
mod rfc8261;
mod rfc9260;
