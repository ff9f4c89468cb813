/// The entry point.
@main
enum Program {
    static func main() {
        MainThreadExecutor().run { await Crudctl.execute(Array(CommandLine.arguments.dropFirst())) }
    }
}
