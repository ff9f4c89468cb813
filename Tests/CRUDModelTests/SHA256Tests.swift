import CRUDModel
import CRUDTestSupport
import Testing

/// The examples that NIST publishes for FIPS 180-4, and messages around the length of a block.
@Suite struct SHA256Tests {
    @Test(arguments: [
        ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
        ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        (
            "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
        ),
    ])
    func digestsText(text: String, digest: String) {
        #expect(SHA256.digest(text.utf8) == digest)
    }

    @Test func digestsManyBlocks() {
        let digest = "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"
        #expect(SHA256.digest(repeatElement(UInt8(ascii: "a"), count: 1_000_000)) == digest)
    }

    @Test(arguments: [1, 55, 56, 63, 64, 65, 119, 120])
    func acceptsAMessageInPieces(count: Int) {
        let bytes = (0..<count).map { UInt8($0) }
        var hash = SHA256()
        for byte in bytes { hash.update(CollectionOfOne(byte)) }
        #expect(hash.finish() == SHA256.digest(bytes))
    }

    /// Messages whose lengths are near those at which the padding changes, and long ones.
    @Test func agreesWithSha256sum() throws {
        let directory = try TemporaryDirectory()
        let lengths = [0, 1, 54, 55, 56, 57, 63, 64, 65, 119, 120, 127, 128, 129, 65535, 65536, 65537, 200_000]
        let paths = lengths.map { "\(directory.path)/\($0)" }
        let messages = lengths.map { length in (0..<length).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ $0 >> 8) } }
        for (message, path) in zip(messages, paths) { try Files.write(message, to: path) }
        let outcome = try Command.run("sha256sum", paths)
        let digests = outcome.output.split(separator: "\n").map { String($0.prefix(64)) }
        #expect(messages.map { SHA256.digest($0) } == digests)
    }
}
