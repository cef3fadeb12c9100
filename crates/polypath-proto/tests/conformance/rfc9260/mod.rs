//! RFC 9260, Stream Control Transmission Protocol.

mod section_3;
mod section_4;
mod section_5;
mod section_6;
mod section_7;
mod section_8;
mod section_9;
mod setup;
