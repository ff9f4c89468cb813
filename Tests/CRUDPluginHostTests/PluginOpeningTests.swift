import CRUDPluginABI
import CRUDTestSupport
import Logging
import Testing

@testable import CRUDPluginHost

/// What a plugin says of itself as it is opened, and what it can tell the host.
@Suite struct PluginOpeningTests {
    /// A plugin that declares everything, and whose `open` does what `body` says.
    private func plugin(opening body: String) throws -> Plugin {
        let text = """
            #include <crudd_plugin.h>
            static crudd_status any() { return CRUDD_OK; }
            static void say(void (*text)(void *, crudd_log_level, crudd_bytes), void *context, const char *words) {
                text(context, CRUDD_LOG_WARNING, (crudd_bytes){(const uint8_t *)words, 5});
            }
            static crudd_status open(crudd_bytes options, const crudd_host *host, const crudd_call *call,
                                     crudd_backend **backend, crudd_opened *opened, crudd_failure *failure) {
                *backend = (crudd_backend *)8;
                \(body)
                return CRUDD_OK;
            }
            const crudd_plugin *crudd_plugin_entry(void) {
                static crudd_plugin plugin = {
                    sizeof plugin, CRUDD_ABI_VERSION, "p", "1", 511, (void *)any, open, (void *)any, (void *)any,
                    (void *)any, (void *)any, (void *)any, (void *)any, (void *)any, (void *)any, (void *)any,
                    (void *)any, .remove_expired = (void *)any, .trim_history = (void *)any,
                    .take_history = (void *)any, .read_history = (void *)any};
                return &plugin;
            }
            """
        // A folder of its own: what was loaded from a path stays.
        let directory = try TemporaryDirectory()
        try CompiledPlugin.compile(text: text, to: "\(directory.path)/plugin.so")
        return try Plugin.load(PluginFile(named: "plugin", in: [directory.path], sha256: nil))
    }

    private func open(
        _ body: String, _ host: PluginHostCallbacks = PluginHostCallbacks(backend: "b", logger: Logger(label: "test"))
    ) throws -> OpenedPlugin {
        try plugin(opening: body).open(options: Array("{}".utf8), host: host.pointer)
    }

    @Test func whatItDeclares() throws {
        let opened = try open("")
        #expect(opened.capabilities == .known)
        #expect(opened.lastSequence == 0 && opened.readers == 1 && opened.child == nil)
    }

    @Test func whatItSaysAsItIsOpened() throws {
        let opened = try open(
            """
            if (opened->capabilities != 511) return CRUDD_INTERNAL;
            opened->capabilities = ~(uint64_t)CRUDD_IS_DURABLE;
            opened->last_sequence = ~(uint64_t)0;
            opened->readers = 4;
            """)
        #expect(opened.capabilities == Plugin.Capabilities.known.subtracting(.durable))
        #expect(opened.lastSequence == .max && opened.readers == 4)
    }

    @Test func whatIsReadOneAfterTheOtherHasOneReader() throws {
        let opened = try open(
            "opened->capabilities &= ~(uint64_t)CRUDD_CAN_READ_CONCURRENTLY; opened->readers = 4;")
        #expect(opened.capabilities == Plugin.Capabilities.known.subtracting([.concurrentReads, .fastReads]))
        #expect(opened.readers == 1)
    }

    @Test func theCallHasAClockAndNoDeadline() throws {
        #expect(throws: Never.self) {
            try open(
                """
                if (call->struct_size != sizeof *call || call->now < 1700000000000) return CRUDD_INTERNAL;
                if (call->deadline || call->interrupted) return CRUDD_INTERNAL;
                """)
        }
    }

    @Test func whyItIsNotOpened() throws {
        let failure = try #require(throws: PluginFailure.self) {
            try open("failure->message[0] = 'n'; return CRUDD_UNAVAILABLE;")
        }
        #expect(failure.status == CRUDD_UNAVAILABLE && failure.message == "n" && !failure.isFinal)
        #expect(try #require(throws: PluginFailure.self) { try open("*backend = 0;") }.status == CRUDD_INTERNAL)
    }

    @Test func whatItTellsTheHost() throws {
        let lines = try Inbox<String>()
        let states = try Inbox<String>()
        let changes = try Inbox<String>()
        let logger = Logger(label: "test") { _ in LogInbox(lines: lines) }
        let host = PluginHostCallbacks(backend: "kid", logger: logger) { isUp, reason in
            states.put("\(isUp) \(reason)")
        } changed: { name in
            changes.put(String(decoding: name, as: UTF8.self))
        }
        _ = try open(
            """
            if (host->struct_size != sizeof *host) return CRUDD_INTERNAL;
            say(host->log, host->context, "hello");
            host->progress(host->context, 1, 2);
            host->state(host->context, CRUDD_DOWN, (crudd_bytes){(const uint8_t *)"gone", 4});
            host->state(host->context, CRUDD_UP, (crudd_bytes){0, 0});
            host->changed(host->context, (crudd_bytes){(const uint8_t *)"notes", 5});
            """, host)
        #expect(try lines.take() == "warning: backend kid: hello")
        #expect(try [states.take(), states.take()] == ["false gone", "true "])
        #expect(try changes.take() == "notes")
    }
}
