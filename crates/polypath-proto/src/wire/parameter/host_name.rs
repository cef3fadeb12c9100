//! Host Name Address, RFC 9260 3.3.2.1.4.
//!
//! The parameter is deprecated: it must not be sent, and a receiver responds with an ABORT, to
//! which an Unresolvable Address cause may be added. It therefore has no method of its own;
//! [`ParameterWriter::typed`](super::ParameterWriter::typed) can write it.
//!
//! ```text
//! +-------------------------------+-------------------------------+
//! |           Type = 11           |            Length             |
//! +-------------------------------+-------------------------------+
//! \                           Host Name                           \
//! +---------------------------------------------------------------+
//! ```

#[cfg(test)]
mod tests {
    use super::super::{Parameter, check, parameter_type};

    #[test]
    fn bytes() {
        let raw = &[0, 11, 0, 6, b'a', 0];
        check(|p| p.typed(parameter_type::HOST_NAME, b"a\0"), Parameter::HostName(raw), raw);
    }
}
