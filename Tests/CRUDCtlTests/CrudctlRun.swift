import Foundation
import Glibc
import ScriptedDaemon

/// A run of the real `crudctl`.
struct CrudctlRun: Sendable {
    var status: Int32
    var output: String
    var errors: String

    /// Runs `crudctl` to its end.
    ///
    /// - Parameters:
    ///   - standardInput: what it reads; nil: nothing.
    ///   - executable: another copy of the program than the one beside the tests.
    static func of(
        _ arguments: [String], standardInput: String? = nil, environment: [String: String] = [:],
        executable: URL? = nil
    ) async throws -> CrudctlRun {
        let process = Process()
        process.executableURL = try executable ?? Self.executable
        process.arguments = arguments
        process.environment = environment
        let (output, errors) = (Pipe(), Pipe())
        process.standardOutput = output
        process.standardError = errors
        if let standardInput {
            let input = Pipe()
            process.standardInput = input
            try input.fileHandleForWriting.write(contentsOf: Data(standardInput.utf8))
            try input.fileHandleForWriting.close()
        } else {
            process.standardInput = FileHandle.nullDevice
        }
        let status = try await process.status()
        return CrudctlRun(
            status: status,
            output: String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self),
            errors: String(decoding: errors.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self))
    }

    /// Runs `crudctl` with a terminal of `columns` for its standard streams, and returns what shows on it.
    static func onTerminal(
        columns: UInt16, _ arguments: [String], typing: String = "", environment: [String: String] = [:]
    ) async throws -> CrudctlRun {
        var (primary, secondary): (Int32, Int32) = (-1, -1)
        var size = winsize(ws_row: 50, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0)
        guard openpty(&primary, &secondary, nil, nil, &size) == 0 else { throw ScriptFault("no terminal: \(errno)") }
        let terminal = FileHandle(fileDescriptor: secondary, closeOnDealloc: true)
        let screen = FileHandle(fileDescriptor: primary, closeOnDealloc: true)
        let process = Process()
        process.executableURL = try executable
        process.arguments = arguments
        process.environment = environment
        process.standardInput = terminal
        process.standardOutput = terminal
        process.standardError = terminal
        try screen.write(contentsOf: Data(typing.utf8))
        let status = try await process.status()
        // All that was written is in the terminal's queue by now.
        var text: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 4096)
        var poll = pollfd(fd: primary, events: Int16(POLLIN), revents: 0)
        while Glibc.poll(&poll, 1, 0) == 1, poll.revents & Int16(POLLIN) != 0 {
            let count = read(primary, &chunk, chunk.count)
            guard count > 0 else { break }
            text += chunk[..<count]
        }
        withExtendedLifetime(terminal) {}
        let shown = String(decoding: text, as: UTF8.self).replacing("\r\n", with: "\n")
        return CrudctlRun(status: status, output: shown, errors: "")
    }

    /// The program beside the tests.
    static var executable: URL {
        get throws {
            let tests = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
            return URL(fileURLWithPath: tests).deletingLastPathComponent().appending(path: "crudctl")
        }
    }
}

extension Process {
    /// Runs the program to its end. What dies by a signal has 128 and the signal's number, as in a shell.
    func status() async throws -> Int32 {
        try await withCheckedThrowingContinuation { continuation in
            terminationHandler = { process in
                let signal: Int32 = process.terminationReason == .uncaughtSignal ? 128 : 0
                continuation.resume(returning: signal + process.terminationStatus)
            }
            do { try run() } catch { continuation.resume(throwing: error) }
        }
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
                try peer.awaitClosing()
                return request.text
            }
        }
    }
}
