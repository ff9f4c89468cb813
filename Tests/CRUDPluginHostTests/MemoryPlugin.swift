import CRUDTestSupport
import Glibc

@testable import CRUDPluginHost

/// The plugin of `Tests/Plugins/memory.c`, a copy with counters of its own.
struct MemoryPlugin: Sendable {
    /// In the order of the C source.
    enum Counter: Int32 {
        case opens, closes, readers, creations, reads, writes, mutations, snapshotsEnded, idles, breaches
    }

    /// In the order of the C source.
    enum Event: Int32 {
        case writeBegan, idled
    }

    let plugin: Plugin
    private let counter: @convention(c) (Int32) -> Int
    private let awaitEvent: @convention(c) (Int32, Int32) -> Int32
    private let pass: @convention(c) (Int32) -> Void

    init(capabilities: Plugin.Capabilities = [.readsConcurrently, .readsFast]) throws {
        let directory = try TemporaryDirectory()
        let path = "\(directory.path)/memory.so"
        try CompiledPlugin.compile("memory.c", definitions: ["CAPABILITIES=\(capabilities.rawValue)"], to: path)
        plugin = try Plugin.load(PluginFile(named: "memory", in: [directory.path], sha256: nil))
        guard let library = dlopen(path, RTLD_NOW | RTLD_NOLOAD) else { throw Failure("\(path) is not loaded") }
        func function<Function>(_ name: String, _ type: Function.Type) throws -> Function {
            guard let symbol = dlsym(library, name) else { throw Failure("\(path) has no \(name)") }
            // The C source gives the symbol this type.
            return unsafe unsafeBitCast(symbol, to: type)
        }
        counter = try function("memory_counter", (@convention(c) (Int32) -> Int).self)
        awaitEvent = try function("memory_await", (@convention(c) (Int32, Int32) -> Int32).self)
        pass = try function("memory_pass", (@convention(c) (Int32) -> Void).self)
    }

    /// How often the host has asked for something; `breaches` counts what the contract forbids.
    subscript(_ counter: Counter) -> Int { self.counter(counter.rawValue) }

    /// Waits for the next event of a kind.
    func wait(for event: Event) throws {
        guard awaitEvent(event.rawValue, 30) != 0 else { throw Failure("\(event) does not come") }
    }

    /// Lets so many writes pass the gate of a backend with the option `gated`.
    func pass(_ writes: Int = 1) { pass(Int32(writes)) }
}
