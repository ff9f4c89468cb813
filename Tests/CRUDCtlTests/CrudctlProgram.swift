import CRUDTestSupport
import Glibc
import ScriptedDaemon

/// The real `crudctl`, run to its end.
enum CrudctlProgram {
    static var path: String {
        get throws { try BuildProducts.path(of: "crudctl") }
    }

    static func run(
        _ arguments: [String], environment: [String: String] = [:], input: String = ""
    ) throws -> Command.Outcome {
        try Command.run(path, arguments, environment: environment, input: input)
    }

    /// Runs `crudctl` on a terminal of so many columns, and returns what shows there.
    static func run(
        _ arguments: [String], columns: UInt16, typing: String = "", environment: [String: String] = [:]
    ) throws -> String {
        var (screenNumber, terminalNumber): (Int32, Int32) = (-1, -1)
        var size = winsize(ws_row: 50, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0)
        guard openpty(&screenNumber, &terminalNumber, nil, nil, &size) == 0 else { throw Failure.system("openpty") }
        let (screen, terminal) = (Descriptor(owning: screenNumber), Descriptor(owning: terminalNumber))
        guard write(screen.number, typing, typing.utf8.count) == typing.utf8.count else {
            throw Failure.system("write")
        }
        let process = try ChildProcess(
            path, arguments, environment: environment, descriptors: (0..<3).map { (terminal.number, $0) })
        guard try process.waitForExit() == .exited(0) else { throw Failure("crudctl failed") }
        // All that it wrote is in the terminal's queue by now.
        var text: [UInt8] = []
        while try screen.wait(for: POLLIN, until: Deadline(.zero)) != 0 {
            var chunk = [UInt8](repeating: 0, count: 4096)
            let count = read(screen.number, &chunk, chunk.count)
            guard count > 0 else { break }
            text += chunk[..<count]
        }
        withExtendedLifetime(terminal) {}
        return String(decoding: text.filter { $0 != UInt8(ascii: "\r") }, as: UTF8.self)
    }
}

extension ScriptedDaemon where Value == [String] {
    /// A daemon that answers each of its clients' one request with the next of `answers`, results or errors, and returns
    /// what was sent.
    convenience init(answering answers: String...) throws {
        try self.init { listener in
            try answers.map { answer in
                let peer = try listener.accept()
                let request = try peer.request()
                if answer.hasPrefix(#"{"code""#) {
                    try peer.refuse(request, answer)
                } else {
                    try peer.answer(request, answer)
                }
                try peer.drain()
                return request.text
            }
        }
    }
}
