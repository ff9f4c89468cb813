import CRUDTestSupport
import Glibc
import ScriptedDaemon
import Testing

/// What clients and the daemon send reaches a terminal as text that cannot steer it, and a pipe as it is.
@Suite struct TerminalSafetyTests {
    /// C1 controls that end and begin escape sequences, bidirectional controls, separators, invisible ones and tags.
    private static let hostile =
        "\u{7F}\u{9B}2J\u{9D}0;x\u{9C}\u{202E}\u{2066}\u{200F}\u{61C}\u{2028}\u{200B}\u{FEFF}\u{E0041}"
    private static let escaped =
        #"\u007f\u009b2J\u009d0;x\u009c\u202e\u2066\u200f\u061c\u2028\u200b\ufeff\udb40\udc41"#
    /// Letters, and what joins them.
    private static let harmless = "é 日本 👩\u{200D}🔬 می\u{200C}خواهم"

    private static let item = #"{"a":"\#(hostile)\#(harmless)"}"#
    private static let shown = #"{"a":"\#(escaped)\#(harmless)"}"#
    private static let record = #"{"id":"x","item":\#(item),"revision":"1"}"#
    private static let page = #"{"records":[\#(record)]}"#
    private static let change = #"{"changes":[\#(record)],"cursor":"c","more":false}"#
    private static let expired = #"{"code":-32014,"message":"forgotten","data":{"name":"cursor_expired"}}"#
    private static let description = #"{"name":"c","backend":"main","format":"json","indexes":[],"count":1}"#
    private static let metrics = "{\"text\":\"# HELP a \(hostile)\\n# EOF\\n\"}"
    private static let error = #"{"code":-32602,"message":"\#(hostile)","data":{"name":"invalid_params"}}"#

    static let lines: [(arguments: [String], replies: [String])] = [
        (["read", "c", "x"], [record]), (["read", "c", "x", "-o", "json"], [record]),
        (["read", "c", "x", "-o", "yaml"], [record]), (["read", "c", "x", "-o", "ndjson"], [record]),
        (["read", "c", "x", "--raw"], [record]), (["query", "c"], [page]), (["query", "c", "--all"], [page]),
        (["query", "c", "-o", "json"], [page]), (["query", "c", "-o", "json", "--all"], [page]),
        (["query", "c", "-o", "yaml"], [page]), (["query", "c", "-o", "ndjson"], [page]),
        (["watch", "c"], [change, expired]), (["dump", "c"], [description, page]), (["metrics"], [metrics]),
        (["metrics", "-o", "json"], [metrics]), (["call", "a"], [record]), (["ping"], [error]),
        (["ping", "-o", "json"], [error]),
    ]

    private static func daemon(_ replies: [String]) throws -> ScriptedDaemon<Void> {
        try ScriptedDaemon { listener in
            let peer = try listener.accept()
            for reply in replies {
                let request = try peer.request()
                if reply.hasPrefix(#"{"code""#) {
                    try peer.reject(request, reply)
                } else {
                    try peer.reply(to: request, reply)
                }
            }
            try peer.drain()
        }
    }

    @Test(arguments: lines)
    func nothingSteersTheTerminal(arguments: [String], replies: [String]) async throws {
        let daemon = try Self.daemon(replies)
        let screen = try CrudctlProgram.terminal(
            [CrudctlProgram.path] + arguments + ["--socket", daemon.path, "--no-color"], columns: 400
        ).screen
        let bare = screen.unicodeScalars.filter { scalar in
            switch scalar.properties.generalCategory {
            case .control: scalar != "\n"
            case .format: scalar != "\u{200C}" && scalar != "\u{200D}"
            case .lineSeparator, .paragraphSeparator: true
            default: false
            }
        }
        #expect(bare.isEmpty, "\(screen.debugDescription)")
        // YAML has escapes of eight digits.
        #expect(screen.replacing(#"\U000e0041"#, with: #"\udb40\udc41"#).contains(Self.escaped), "\(screen)")
        let isAboutTheItem = replies.contains { $0.contains(Self.item) }
        #expect(!isAboutTheItem || screen.contains(Self.harmless) || arguments.contains("yaml"), "\(screen)")
        try await daemon.finish()
    }

    @Test(arguments: [
        (["read", "c", "x"], [record], record + "\n"), (["read", "c", "x", "--raw"], [record], item + "\n"),
        (["query", "c"], [page], page + "\n"), (["watch", "c"], [change, expired], record + "\n"),
        (["metrics", "-o", "json"], [metrics], metrics + "\n"),
        (["metrics"], [metrics], "# HELP a \(hostile)\n# EOF\n"),
    ])
    func aPipeGetsItAsItIs(_ arguments: [String], _ replies: [String], _ output: String) async throws {
        let daemon = try Self.daemon(replies)
        let run = try CrudctlProgram.run(arguments + ["--socket", daemon.path])
        #expect(run.output == output)
        try await daemon.finish()
    }

    // MARK: Small terminals

    @Test(arguments: lines, [(columns: UInt16(1), rows: UInt16(1)), (1, 50), (80, 1)])
    func everySizeOfTerminalWillDo(
        _ line: (arguments: [String], replies: [String]), _ size: (columns: UInt16, rows: UInt16)
    ) async throws {
        let daemon = try Self.daemon(line.replies)
        let run = try CrudctlProgram.terminal(
            [CrudctlProgram.path] + line.arguments + ["--socket", daemon.path], columns: size.columns, rows: size.rows)
        guard case .exited = run.status else {
            Issue.record("\(line.arguments): \(run.status)")
            return
        }
        try await daemon.finish()
    }

    @Test(arguments: [(columns: UInt16(1), rows: UInt16(1)), (1, 50), (80, 1)])
    func aBarFitsEverySizeOfTerminal(_ size: (columns: UInt16, rows: UInt16)) async throws {
        let directory = try TemporaryDirectory()
        func moves(copied: Int) -> String {
            let places = #""from":{"backend":"m","format":"json"},"to":{"backend":"n","format":"json"}"#
            let list = ["a", "b"].map {
                #"{"collection":"\#($0)",\#(places),"copied":\#(copied),"total":-1,"phase":"copying"}"#
            }
            return #"{"moves":[\#(list.joined(separator: ","))]}"#
        }
        let place = #"{"name":"a","backend":"n","format":"json","count":1}"#
        let header = #"{"crudd":"dump","version":1,"collection":"c","format":"json"}"#
        try Files.write("\(header)\n{\"id\":\"a\",\"item\":1}\n{\"count\":1}\n", to: "\(directory.path)/dump")
        let lines: [(arguments: [String], replies: [String])] = [
            (["dump", "c"], [Self.description, Self.page]),
            (["load", "\(directory.path)/dump"], [#"{"limits":{}}"#, #"{"results":[{"result":{}}]}"#]),
            (
                ["reload", "--move"],
                [
                    #"{"changes":[],"moves":["a","b"]}"#, moves(copied: .min), moves(copied: .max), #"{"moves":[]}"#,
                    place, place,
                ]
            ),
        ]
        for line in lines {
            let daemon = try Self.daemon(line.replies)
            let command = [#"exec "$0" "$@" > /dev/null"#, try CrudctlProgram.path] + line.arguments
            let run = try CrudctlProgram.terminal(
                ["sh", "-c"] + command + ["--socket", daemon.path], columns: size.columns, rows: size.rows)
            #expect(run.status == .exited(0), "\(line.arguments): \(run.screen)")
            try await daemon.finish()
        }
    }

    // MARK: Descriptors that do not wait

    /// As a terminal or a pipe is that another program has set to O_NONBLOCK.
    @Test func waitsForAnOutputThatIsFull() async throws {
        let text = "[" + String(repeating: "0,", count: 400_000) + "0]"
        let daemon = try ScriptedDaemon(replying: text)
        var ends: [Int32] = [-1, -1]
        #expect(pipe(&ends) == 0)
        for end in ends { #expect(fcntl(end, F_SETFD, FD_CLOEXEC) == 0) }
        let output = Descriptor(owning: ends[0])
        #expect(fcntl(ends[1], F_SETFL, O_NONBLOCK) == 0)
        // Only the process has the other end.
        let process = try ChildProcess(
            CrudctlProgram.path, ["call", "x", "--socket", daemon.path],
            descriptors: [(Descriptor(owning: ends[1]), 1)])
        // The pipe is full by then.
        try Self.awaitPoll(of: process)
        var count = 0
        var chunk = [UInt8](repeating: 0, count: 4096)
        while true {
            let size = read(output.number, &chunk, chunk.count)
            guard size > 0 else { break }
            count += size
        }
        #expect(count == text.utf8.count + 1)
        #expect(try process.waitForExit() == .exited(0))
        _ = try await daemon.finish()
    }

    @Test(arguments: [["create", "c", "x"], ["load"], ["drop", "c"]])
    func waitsForAnInputThatIsEmpty(_ arguments: [String]) async throws {
        let header = #"{"crudd":"dump","version":1,"collection":"c","format":"json"}"#
        let inputs = ["create": "[1]", "load": "\(header)\n{\"count\":0}\n", "drop": "yes\n"]
        let replies = [
            "create": [#"{"revision":"1"}"#], "load": [#"{"limits":{}}"#], "drop": [Self.description, "{}"],
        ]
        let daemon = try ScriptedDaemon { listener in
            // A command that calls twice may connect twice.
            var rest = (replies[arguments[0]] ?? [])[...]
            while !rest.isEmpty {
                let peer = try listener.accept()
                while let reply = rest.first, let request = try? peer.request() {
                    try peer.reply(to: request, reply)
                    rest = rest.dropFirst()
                }
            }
        }
        var (input, output): (Int32, Int32) = (-1, -1)
        // A question is asked on a terminal only.
        if arguments[0] == "drop" {
            #expect(openpty(&output, &input, nil, nil, nil) == 0)
        } else {
            var ends: [Int32] = [-1, -1]
            #expect(pipe(&ends) == 0)
            (input, output) = (ends[0], ends[1])
        }
        for end in [input, output] { #expect(fcntl(end, F_SETFD, FD_CLOEXEC) == 0) }
        #expect(fcntl(input, F_SETFL, O_NONBLOCK) == 0)
        let owner = Descriptor(owning: input)
        let process = try ChildProcess(
            CrudctlProgram.path, arguments + ["--socket", daemon.path], descriptors: [(owner, 0)])
        // It has found nothing to read by then.
        try Self.awaitPoll(of: process)
        let text = inputs[arguments[0]] ?? ""
        #expect(write(output, text, text.utf8.count) == text.utf8.count)
        if arguments[0] != "drop" { close(output) }
        #expect(try process.waitForExit() == .exited(0))
        try await daemon.finish()
        withExtendedLifetime(owner) {}
        if arguments[0] == "drop" { close(output) }
    }

    /// The numbers of poll(2) and ppoll(2) for an x86 and an ARM processor of 64 bits.
    #if arch(x86_64)
    private static let pollNumbers = [7, 271]
    #else
    private static let pollNumbers = [73]
    #endif

    /// Waits until the process waits in poll(2), or has ended.
    private static func awaitPoll(of process: ChildProcess) throws {
        let deadline = Deadline()
        while !deadline.hasPassed {
            let status = String(decoding: try Files.read("/proc/\(process.pid)/stat"), as: UTF8.self)
            if status.split(separator: ")").last?.hasPrefix(" Z") != false { return }
            let call = String(decoding: try Files.read("/proc/\(process.pid)/syscall"), as: UTF8.self)
            if Self.pollNumbers.contains(where: { call.hasPrefix("\($0) ") }) { return }
        }
        throw Failure("it does not wait for its input")
    }
}
