import CRUDPluginABI
import CRUDTestSupport
import Glibc

/// A plugin as the host has it: a shared object that was loaded, and its function table.
// The table is constant and lives as long as the process.
struct Plugin: @unchecked Sendable {
    let table: UnsafePointer<crudd_plugin>

    /// The product that is being tested.
    static var sqlite: Plugin {
        get throws { try Plugin(path: BuildProducts.path(of: "libsqlite.so")) }
    }

    init(path: String) throws {
        guard let library = dlopen(path, RTLD_NOW | RTLD_LOCAL) else {
            throw Failure(dlerror().map { String(cString: $0) } ?? "dlopen \(path)")
        }
        guard let symbol = dlsym(library, "crudd_plugin_entry") else { throw Failure("\(path) is not a plugin") }
        typealias Entry = @convention(c) () -> UnsafePointer<crudd_plugin>?
        // The header gives the symbol this type.
        guard let table = unsafe unsafeBitCast(symbol, to: Entry.self)() else { throw Failure("\(path) has no table") }
        self.table = table
    }

    func checkOptions(_ options: String) throws {
        let arena = Arena()
        try call { table.pointee.check_options(arena.bytes(options), $0) }
    }

    /// Makes a call and throws what it returned instead of CRUDD_OK.
    func call(_ body: (UnsafeMutablePointer<crudd_failure>) -> crudd_status) throws {
        var failure = crudd_failure()
        failure.struct_size = UInt32(MemoryLayout<crudd_failure>.size)
        let status = Int(body(&failure))
        if status == CRUDD_OK { return }
        throw PluginFailure(
            status: status, message: Self.text(failure.message), pointer: Self.text(failure.pointer))
    }

    private static func text<Characters>(_ characters: Characters) -> String {
        withUnsafeBytes(of: characters) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
    }
}

/// What a call returned instead of CRUDD_OK.
struct PluginFailure: Error {
    let status: Int
    let message: String
    let pointer: String
}

/// What `body` fails with; nil if it does not.
func failure(of body: () throws -> Void) throws -> PluginFailure? {
    do {
        try body()
        return nil
    } catch let failure as PluginFailure {
        return failure
    }
}

/// Memory for what a call is handed, until the arena is gone.
final class Arena {
    private var buffers: [UnsafeMutableRawPointer] = []

    deinit {
        for buffer in buffers { buffer.deallocate() }
    }

    func array<Element>(_ content: [Element]) -> UnsafeMutablePointer<Element> {
        let buffer = UnsafeMutableBufferPointer<Element>.allocate(capacity: max(1, content.count))
        _ = buffer.initialize(from: content)
        // A buffer of at least one element has an address.
        buffers.append(UnsafeMutableRawPointer(buffer.baseAddress!))
        return buffer.baseAddress!
    }

    func bytes(_ content: [UInt8]) -> crudd_bytes {
        crudd_bytes(data: UnsafePointer(array(content)), size: content.count)
    }

    func bytes(_ text: String) -> crudd_bytes { bytes(Array(text.utf8)) }
}

extension [UInt8] {
    init(_ bytes: crudd_bytes) {
        self.init(UnsafeBufferPointer(start: bytes.data, count: bytes.size))
    }
}
