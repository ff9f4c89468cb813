import CRUDPluginHost
import CRUDTestSupport
import Glibc

/// The plugin of `Tests/Plugins/scripted.c`, a copy with counters of its own.
struct ScriptedPlugin: Sendable {
    /// In the order of the C source.
    enum Counter: Int32 {
        case opens, closes, readers, creations, reads, writes, mutations, snapshotsEnded, idles, violations
        case scans, counts, keysSet, interrupts, collectionsOpened, trims, readsToWrite
        case itemsRead
    }

    /// In the order of the C source.
    enum Event: Int32 {
        case writeBegan, idled
    }

    /// As the host has it.
    let loaded: Plugin
    private let counter: @convention(c) (Int32) -> Int
    private let awaitEvent: @convention(c) (Int32, Int32) -> Int32
    private let pass: @convention(c) (Int32) -> Void
    private let state: @convention(c) (Int32) -> Void

    init(capabilities: Plugin.Capabilities = [.concurrentReads, .fastReads]) throws {
        let directory = try TemporaryDirectory()
        let path = "\(directory.path)/scripted.so"
        try CompiledPlugin.compile("scripted.c", definitions: ["CAPABILITIES=\(capabilities.rawValue)"], to: path)
        loaded = try Plugin.load(PluginFile(named: "scripted", in: [directory.path], sha256: nil))
        guard let library = dlopen(path, RTLD_NOW | RTLD_NOLOAD) else { throw Failure("\(path) is not loaded") }
        func function<Function>(_ name: String, _ type: Function.Type) throws -> Function {
            guard let symbol = dlsym(library, name) else { throw Failure("\(path) has no \(name)") }
            // The C source gives the symbol this type.
            return unsafe unsafeBitCast(symbol, to: type)
        }
        counter = try function("scripted_counter", (@convention(c) (Int32) -> Int).self)
        awaitEvent = try function("scripted_await", (@convention(c) (Int32, Int32) -> Int32).self)
        pass = try function("scripted_pass", (@convention(c) (Int32) -> Void).self)
        state = try function("scripted_state", (@convention(c) (Int32) -> Void).self)
    }

    /// How often the host has made a kind of call; `violations` counts what the contract forbids.
    subscript(_ counter: Counter) -> Int { self.counter(counter.rawValue) }

    /// Waits for the next event of a kind.
    func wait(for event: Event) throws {
        guard awaitEvent(event.rawValue, 30) != 0 else { throw Failure("\(event) does not come") }
    }

    /// Lets so many writes pass the gate of a backend with the option `gated`.
    func pass(_ writes: Int = 1) { pass(Int32(writes)) }

    /// Reports to the host that the storage was lost, or is back; the reason is `scripted`.
    func report(isUp: Bool) { state(isUp ? 1 : 0) }
}
