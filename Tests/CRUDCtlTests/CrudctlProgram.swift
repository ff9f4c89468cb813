import CRUDTestSupport
import Glibc
import ScriptedDaemon

/// The real `crudctl`, run until it exits.
enum CrudctlProgram {
    static var path: String {
        get throws { try BuildProducts.path(of: "crudctl") }
    }

    static func run(
        _ arguments: [String], environment: [String: String] = [:], input: String = ""
    ) throws -> Command.Outcome {
        try Command.run(path, arguments, environment: environment, input: input)
    }

    /// Runs `crudctl` on a terminal of so many columns, and returns its output.
    static func run(
        _ arguments: [String], columns: UInt16, typing: String = "", environment: [String: String] = [:]
    ) throws -> String {
        let run = try terminal([path] + arguments, columns: columns, typing: typing, environment: environment)
        guard run.status == .exited(0) else { throw Failure("crudctl failed") }
        return run.screen
    }

    /// Runs a program on a terminal until it exits, without a pager unless `environment` names one. What it prints has
    /// to be less than a terminal's queue holds.
    static func terminal(
        _ command: [String], columns: UInt16, rows: UInt16 = 50, typing: String = "",
        environment: [String: String] = [:]
    ) throws -> (status: ExitStatus, screen: String) {
        var (screenNumber, terminalNumber): (Int32, Int32) = (-1, -1)
        var size = winsize(ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0)
        guard openpty(&screenNumber, &terminalNumber, nil, nil, &size) == 0 else { throw Failure.system("openpty") }
        let (screen, terminal) = (Descriptor(owning: screenNumber), Descriptor(owning: terminalNumber))
        guard write(screen.number, typing, typing.utf8.count) == typing.utf8.count else {
            throw Failure.system("write")
        }
        let process = try ChildProcess(
            command[0], Array(command.dropFirst()),
            environment: ["PAGER": ""].merging(environment) { $1 },
            descriptors: (0..<3).map { (terminal, $0) })
        let status = try process.waitForExit()
        // All of its output is in the terminal's queue now.
        var text: [UInt8] = []
        while try screen.wait(for: POLLIN, until: Deadline(.zero)) != 0 {
            var chunk = [UInt8](repeating: 0, count: 4096)
            let count = read(screen.number, &chunk, chunk.count)
            guard count > 0 else { break }
            text += chunk[..<count]
        }
        withExtendedLifetime(terminal) {}
        return (status, String(decoding: text.filter { $0 != UInt8(ascii: "\r") }, as: UTF8.self))
    }
}

extension ScriptedDaemon where Value == [String] {
    /// A daemon that replies to the only request of each client with the next of `replies`, results or errors, and
    /// returns the requests.
    convenience init(replying replies: String...) throws {
        try self.init { listener in
            try replies.map { reply in
                let peer = try listener.accept()
                let request = try peer.request()
                if reply.hasPrefix(#"{"code""#) {
                    try peer.reject(request, reply)
                } else {
                    try peer.reply(to: request, reply)
                }
                // Such as the question whether a collection exists, after a result that is empty.
                while let next = try? peer.request() {
                    try peer.reject(next, #"{"code":-32005,"message":"no","data":{"name":"permission_denied"}}"#)
                }
                return request.text
            }
        }
    }
}
