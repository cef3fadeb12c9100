//! Fields of C structures in the byte order of the host, by offset. Fields beyond the end are 0.

/// Reads fields.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl Reader<'_> {
    fn array<const N: usize>(self, offset: usize) -> [u8; N] {
        let found = self.0.get(offset..).and_then(<[u8]>::first_chunk);
        found.copied().unwrap_or([0; N])
    }

    pub(crate) fn u8(self, offset: usize) -> u8 {
        self.array::<1>(offset)[0]
    }

    pub(crate) fn u16(self, offset: usize) -> u16 {
        u16::from_ne_bytes(self.array(offset))
    }

    pub(crate) fn u32(self, offset: usize) -> u32 {
        u32::from_ne_bytes(self.array(offset))
    }

    pub(crate) fn i32(self, offset: usize) -> i32 {
        i32::from_ne_bytes(self.array(offset))
    }
}

/// Writes fields one after the other.
#[derive(Default)]
pub(crate) struct Writer(Vec<u8>);

impl Writer {
    pub(crate) fn raw(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.extend_from_slice(bytes);
        self
    }

    pub(crate) fn u8(&mut self, value: u8) -> &mut Self {
        self.raw(&[value])
    }

    pub(crate) fn u16(&mut self, value: u16) -> &mut Self {
        self.raw(&value.to_ne_bytes())
    }

    pub(crate) fn u32(&mut self, value: u32) -> &mut Self {
        self.raw(&value.to_ne_bytes())
    }

    pub(crate) fn i32(&mut self, value: i32) -> &mut Self {
        self.raw(&value.to_ne_bytes())
    }

    pub(crate) fn done(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.0)
    }
}
