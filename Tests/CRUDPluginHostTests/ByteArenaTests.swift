import Testing

@testable import CRUDPluginHost

@Suite struct ByteArenaTests {
    @Test func keepsWhatIsAppendedWhileItGrows() {
        var arena = ByteArena()
        var places: [ByteArena.Place] = []
        for number in 0..<2000 {
            let bytes = [UInt8](repeating: UInt8(truncatingIfNeeded: number), count: number)
            places.append(arena.append(bytes.span))
        }
        #expect(arena.count == (0..<2000).reduce(0, +))
        for (number, place) in places.enumerated() {
            #expect(place.count == number)
            #expect(arena.bytes(place).allSatisfy { $0 == UInt8(truncatingIfNeeded: number) })
        }
    }

    @Test func nothingIsNoBytes() {
        var arena = ByteArena()
        #expect(arena.bytes(.empty).isEmpty)
        let place = arena.append([UInt8]().span)
        #expect(arena.bytes(place).isEmpty)
        #expect(arena.append(UnsafeRawBufferPointer(start: nil, count: 0)).count == 0)
    }
}
