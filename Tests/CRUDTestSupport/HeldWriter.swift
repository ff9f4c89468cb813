import Glibc

/// A proxy before a PostgreSQL server that can keep from the sessions that commit transactions what the server tells
/// them, be it that it has ended them.
package final class HeldWriter {
    private let process: ChildProcess
    private let directory: TemporaryDirectory
    private var mark: String { "\(directory.path)/held" }

    /// What a backend connects with.
    package var connection: String { "host=\(directory.path) port=5432 dbname=postgres user=crudd" }

    package init(before server: PostgreSQLServer) throws {
        directory = try TemporaryDirectory()
        let program = """
            import os, socket, sys, threading, time
            directory, target = sys.argv[1:]
            class Session:
                commits = False
            def send(session, client, server):
                while data := client.recv(65536):
                    if b"COMMIT" in data: session.commits = True
                    server.sendall(data)
                server.shutdown(socket.SHUT_WR)
            def receive(session, client, server):
                while True:
                    data = server.recv(65536)
                    while session.commits and os.path.exists(directory + "/held"): time.sleep(0.01)
                    if not data: break
                    client.sendall(data)
                client.shutdown(socket.SHUT_RDWR)
            def run(body, *arguments):
                try: body(*arguments)
                except OSError: pass
            listener = socket.socket(socket.AF_UNIX)
            listener.bind(directory + "/.s.PGSQL.5432")
            listener.listen(64)
            open(directory + "/ready", "w").close()
            while True:
                client = listener.accept()[0]
                server = socket.socket(socket.AF_UNIX)
                server.connect(target)
                session = Session()
                for body in (send, receive):
                    threading.Thread(target=run, args=(body, session, client, server), daemon=True).start()
            """
        let socket = "\(server.directory.path)/.s.PGSQL.\(server.port)"
        process = try ChildProcess("/usr/bin/python3", ["-c", program, directory.path, socket], descriptors: [])
        let deadline = Deadline()
        while !Files.exists("\(directory.path)/ready") {
            guard try !deadline.hasPassed && process.isRunning else { throw Failure("no proxy before \(socket)") }
            usleep(5000)
        }
    }

    package func hold() throws { try Files.write("", to: mark) }

    package func release() { Files.remove(mark) }

    deinit { process.signal(SIGKILL) }
}
