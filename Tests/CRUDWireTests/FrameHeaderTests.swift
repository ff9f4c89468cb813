import CRUDWire
import Testing

@Suite struct FrameHeaderTests {
    @Test(
        arguments: [
            (0, [0, 0, 0, 0]), (1, [0, 0, 0, 1]), (0x0102_0304, [1, 2, 3, 4]), (16 << 20, [1, 0, 0, 0]),
            (Int(UInt32.max), [255, 255, 255, 255]),
        ] as [(Int, [UInt8])])
    func isBigEndian(length: Int, bytes: [UInt8]) {
        #expect(FrameHeader.bytes(length: length) == bytes)
        #expect(FrameHeader.length(bytes.span) == length)
        #expect(FrameHeader.length((bytes + [9, 9]).span) == length)
        #expect(bytes.count == FrameHeader.size)
    }
}
