import CRUDTestSupport
import Glibc
import Testing

@testable import CRUDPluginHost

/// The digests are those of the standard and of sha256sum(1).
@Suite struct SHA256Tests {
    static func digest(of text: String) -> String? {
        var hash = SHA256()
        hash.update(text.utf8)
        return hash.finish()
    }

    /// The examples of FIPS 180-4 (https://csrc.nist.gov/projects/cryptographic-standards-and-guidelines/example-values)
    /// and of its predecessor.
    @Test(arguments: [
        ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
        ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        (
            "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
        ),
    ])
    func standardExamples(text: String, digest: String) {
        #expect(Self.digest(of: text) == digest)
    }

    @Test func aMillionLetters() {
        var hash = SHA256()
        for _ in 0..<1000 { hash.update(repeatElement(UInt8(ascii: "a"), count: 1000)) }
        #expect(hash.finish() == "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0")
    }

    /// Lengths around which the padding changes its shape, and a file of more than one chunk.
    @Test func agreesWithSha256sum() throws {
        let directory = try TemporaryDirectory()
        let lengths = [0, 1, 54, 55, 56, 57, 63, 64, 65, 119, 120, 127, 128, 129, 65535, 65536, 65537, 200_000]
        let paths = lengths.map { "\(directory.path)/\($0)" }
        for (length, path) in zip(lengths, paths) {
            try Files.write((0..<length).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ $0 >> 8) }, to: path)
        }
        let outcome = try Command.run("sha256sum", paths)
        let expected = outcome.output.split(separator: "\n").map { String($0.prefix(64)) }
        let digests = try paths.map { path in
            let descriptor = Descriptor(owning: open(path, O_RDONLY | O_CLOEXEC))
            return try #require(SHA256.digest(descriptor: descriptor.number))
        }
        #expect(digests == expected)
        #expect(digests.count == lengths.count)
    }

    @Test func tellsThatAFileCannotBeRead() throws {
        let directory = try TemporaryDirectory()
        let descriptor = Descriptor(owning: open(directory.path, O_RDONLY | O_CLOEXEC))
        #expect(SHA256.digest(descriptor: descriptor.number) == nil)
    }
}
