import CRUDPluginABI

@testable import CRUDPluginHost

/// Memory for bytes of C structs; it stays as long as the object.
final class RawBytes {
    private var copies: [UnsafeMutableBufferPointer<UInt8>] = []
    private var arrays: [UnsafeMutableBufferPointer<crudd_bytes>] = []
    private var records: [UnsafeMutablePointer<crudd_record>] = []

    deinit {
        for copy in copies { copy.deallocate() }
        for array in arrays { array.deallocate() }
        for record in records { record.deallocate() }
    }

    func callAsFunction(_ text: String) -> crudd_bytes { self(Array(text.utf8)) }

    func callAsFunction(_ bytes: [UInt8]) -> crudd_bytes {
        let copy = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: bytes.count)
        _ = copy.initialize(fromContentsOf: bytes)
        copies.append(copy)
        return crudd_bytes(UnsafeBufferPointer(copy))
    }

    /// An array of the bytes of texts.
    func array(_ texts: [String]) -> UnsafePointer<crudd_bytes>? {
        let array = UnsafeMutableBufferPointer<crudd_bytes>.allocate(capacity: texts.count)
        _ = array.initialize(fromContentsOf: texts.map { self($0) })
        arrays.append(array)
        return UnsafePointer(array.baseAddress)
    }

    func copy(_ record: crudd_record) -> UnsafePointer<crudd_record> {
        let copy = UnsafeMutablePointer<crudd_record>.allocate(capacity: 1)
        copy.initialize(to: record)
        records.append(copy)
        return UnsafePointer(copy)
    }
}

extension crudd_bytes {
    var text: String { String(decoding: buffer, as: UTF8.self) }
}
