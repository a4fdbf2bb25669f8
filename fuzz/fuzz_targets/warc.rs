//! O7: any bytes as a file of the archive, and any text as a record in one.
#![no_main]

use std::io::Write as _;
use std::sync::Arc;

use futures::executor::block_on;
use libfuzzer_sys::fuzz_target;
use mehman::archive::ArchiveReader;
use mehman::types::ArchivePointer;
use mehman::world::MemorySpool;

fn read(name: &str, content: Vec<u8>) {
    let spool = MemorySpool::new();
    let length = u64::try_from(content.len()).expect("it is in memory");
    spool.place(&format!("archive/{name}"), content);
    let reader = ArchiveReader::new(Arc::new(spool));
    let pointer = ArchivePointer { file: name.into(), offset: 0, length };
    if let Ok(stored) = block_on(reader.read(&pointer)) {
        assert!(stored.url.as_str().starts_with("http"));
    }
}

fuzz_target!(|data: &[u8]| {
    read("a.warc.gz", data.to_vec());
    read("a.warc.zst", data.to_vec());
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(data).expect("memory takes it");
    read("a.warc.gz", packed.finish().expect("memory takes it"));
});
