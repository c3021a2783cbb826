//! Reading `.npy` files, as far as these tests need it.

/// An array of single-precision numbers.
pub struct Array {
    /// Its dimensions.
    pub shape: Vec<usize>,
    /// Its numbers, the last dimension running fastest.
    pub values: Vec<f32>,
}

impl Array {
    /// Reads a file of version 1.0.
    pub fn parse(file: &[u8]) -> Self {
        assert_eq!(&file[..8], b"\x93NUMPY\x01\x00");
        let data_at = 10 + usize::from(u16::from_le_bytes([file[8], file[9]]));
        assert_eq!(data_at % 64, 0);
        let header = std::str::from_utf8(&file[10..data_at]).expect("text");
        assert!(header.contains("'descr': '<f4'") && header.contains("'fortran_order': False"), "{header}");
        let shape = header.split("'shape': (").nth(1).and_then(|rest| rest.split(')').next()).expect("a shape");
        let dims = shape.split(',').map(str::trim).filter(|dim| !dim.is_empty());
        let shape: Vec<usize> = dims.map(|dim| dim.parse().expect("a number")).collect();
        let (chunks, rest) = file[data_at..].as_chunks::<4>();
        let values: Vec<_> = chunks.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
        assert!(
            rest.is_empty() && values.len() == shape.iter().product::<usize>(),
            "{header} and {} bytes",
            file.len()
        );
        Array { shape, values }
    }

    /// One row of a table.
    pub fn row(&self, index: usize) -> &[f32] {
        let n_columns = self.shape[1];
        &self.values[index * n_columns..][..n_columns]
    }
}
