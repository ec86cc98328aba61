//! A TCP transfer whose every byte is checked.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail, ensure};

use crate::arena::netns::Netns;

/// The outcome of a transfer in which every byte was right.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TcpReport {
    /// Bytes transferred.
    pub bytes: u64,
    /// From connecting to the receiver's confirmation.
    pub elapsed: Duration,
}

impl TcpReport {
    /// Goodput.
    pub fn mbit_per_s(&self) -> f64 {
        self.bytes as f64 * 8.0 / self.elapsed.as_secs_f64() / 1e6
    }
}

/// A peer silent for this long has lost the connection.
const PATIENCE: Duration = Duration::from_secs(15);
const CHUNK: usize = 64 * 1024;

/// Sends `bytes` (rounded down to whole words) from `from` to the address `to` of `at`.
pub fn transfer(from: &Netns, at: &Netns, to: IpAddr, bytes: u64) -> Result<TcpReport> {
    let words = bytes / 8;
    let listener = at.run(|| Ok(TcpListener::bind(SocketAddr::new(to, 0))?))?;
    let address = listener.local_addr()?;
    let start = Instant::now();
    let mut stream = from
        .run(|| Ok(TcpStream::connect_timeout(&address, PATIENCE)?))
        .with_context(|| format!("connect to {address}"))?;
    patient(&stream)?;
    std::thread::scope(|scope| {
        let receiver = scope.spawn(|| receive(&listener, words));
        let sent = send(&mut stream, words);
        let received = receiver.join().map_err(|_| anyhow!("the TCP receiver died"))?;
        // What the receiver found wrong explains a broken connection better than the sender can.
        received.context("TCP receiver")?;
        sent.context("TCP sender")
    })?;
    Ok(TcpReport { bytes: words * 8, elapsed: start.elapsed() })
}

fn send(stream: &mut TcpStream, words: u64) -> Result<()> {
    let mut chunk = Vec::with_capacity(CHUNK);
    for index in 0..words {
        chunk.extend(word(index).to_be_bytes());
        if chunk.len() == CHUNK {
            stream.write_all(&chunk)?;
            chunk.clear();
        }
    }
    stream.write_all(&chunk)?;
    stream.shutdown(std::net::Shutdown::Write)?;
    let mut confirmation = [0];
    stream.read_exact(&mut confirmation).context("no confirmation")
}

fn receive(listener: &TcpListener, words: u64) -> Result<()> {
    let (mut stream, _) = listener.accept()?;
    patient(&stream)?;
    let mut buf = vec![0; CHUNK];
    let (mut index, mut kept) = (0, 0);
    loop {
        let n = stream.read(buf.get_mut(kept..).unwrap_or_default())?;
        let have = buf.get(..kept + n).unwrap_or_default();
        let (whole, rest) = have.as_chunks::<8>();
        for bytes in whole {
            if u64::from_be_bytes(*bytes) != word(index) {
                bail!("wrong content in bytes {} to {}", index * 8, index * 8 + 7);
            }
            index += 1;
        }
        let rest = rest.to_vec();
        kept = rest.len();
        if let Some(front) = buf.get_mut(..kept) {
            front.copy_from_slice(&rest);
        }
        if n == 0 {
            ensure!(index == words && kept == 0, "{} of {} bytes arrived", index * 8, words * 8);
            stream.write_all(&[1])?;
            return Ok(());
        }
    }
}

fn patient(stream: &TcpStream) -> Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    Ok(())
}

/// The content: splitmix64 of the position, so that no piece can be taken for another.
fn word(index: u64) -> u64 {
    let mut z = index.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a receiver of so many words says to these bytes.
    fn received(words: u64, bytes: &[u8]) -> Result<()> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        stream.write_all(bytes).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        receive(&listener, words)
    }

    #[test]
    fn one_wrong_bit_or_missing_byte_is_noticed() {
        let mut bytes: Vec<u8> = (0..20_000).flat_map(|index| word(index).to_be_bytes()).collect();
        received(20_000, &bytes).unwrap();
        let short = received(20_000, &bytes[..bytes.len() - 1]).unwrap_err().to_string();
        assert_eq!(short, "159992 of 160000 bytes arrived");
        bytes[100_003] ^= 0x10;
        let wrong = received(20_000, &bytes).unwrap_err().to_string();
        assert_eq!(wrong, "wrong content in bytes 100000 to 100007");
    }
}
