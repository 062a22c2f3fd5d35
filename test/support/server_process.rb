# frozen_string_literal: true

require "fileutils"
require "rbconfig"
require "socket"
require "tmpdir"
require "pando/cluster/monitor"
require "support/event_line"
require "support/fair_clock"
require "support/proc_tree"

module Support
  # The real executable, run as a user would run it, on a UNIX socket in its own folder. It reads the server's events
  # from stderr as JSON, and tests can wait for them.
  #
  #     server = ServerProcess.start(app: "run ->(env) { [200, {}, ['hi']] }", config: "workers 2")
  #     server.wait_for("refork.finished") { server.signal("USR2") }
  #     server.get("/").body
  #     server.stop
  class ServerProcess
    Response = Struct.new(:status, :headers, :body)
    ROOT = Checkout::ROOT
    PATIENCE = 90 # seconds for any one event
    OF_THE_MACHINE = %w[monitor.stalled queue.delayed spool.in_memory].freeze
    # Begins these files; on a line with other code, because tests look at the numbers of lines.
    GATES = %(require "#{Checkout.path("test/support/app_gates")}"; ).freeze
    GATED = %w[config.ru pando.rb].freeze

    attr_reader :pid, :folder, :socket_path, :output

    # @return [ServerProcess] ready to serve, unless ready: false
    def self.start(ready: true, **options)
      server = new(**options)
      server.wait_until_current if ready
      server
    rescue StandardError
      server&.kill
      raise
    end

    # @param app [String] the text of a config.ru
    # @param config [String] the text of a config/pando.rb; unless it mentions canaries, they are off
    # @param listen [String, false, nil] false: as in the config
    # @param code [String] the folder of Pando's own code
    # @param command [String, nil] "swarm"
    # @param folder [String, nil] an existing application with its config/pando.rb; it is not removed
    # @param program [Array<String>, nil] run in place of Pando's executable
    def initialize(app: DEFAULT_APP, config: "", arguments: [], env: {}, listen: nil, wrapper: [], unsetenv: false,
                   code: ROOT, command: nil, folder: nil, program: nil)
      @own_folder = Dir.mktmpdir("pando-test") unless folder
      @folder = folder || @own_folder
      @socket_path = File.join(@folder, "pando.sock")
      @events = []
      @output = +""
      @lock = Mutex.new
      @news = ConditionVariable.new
      @code = code
      @program = program
      arguments = [*listen_flag(listen), *arguments] unless program
      launch(wrapper, [*command, *(write_app(app, config) unless folder), *arguments], env, unsetenv)
    end

    DEFAULT_APP = <<~RUBY
      run ->(env) { [200, { "content-type" => "text/plain" }, ["pid=\#{Process.pid} path=\#{env['PATH_INFO']}"]] }
    RUBY

    def write(name, text)
      path = File.join(@folder, name)
      FileUtils.mkdir_p(File.dirname(path))
      File.write(path, GATED.include?(name) ? "#{GATES}#{text}" : text)
      path
    end

    # All events so far, or those with one name.
    def events(name = nil) = @lock.synchronize { @events.select { |event| name.nil? || event["event"] == name } }

    # Its warnings, except for those about this machine: it is busy, or its temporary folder is a tmpfs.
    def complaints
      events.select { |event| %w[warn error].include?(event["level"]) && !OF_THE_MACHINE.include?(event["event"]) }
    end

    # Waits for an event with one of these names that comes after this call, while the block (if any) runs.
    def wait_for(*names, patience: PATIENCE, **where, &trigger)
      seen = @lock.synchronize { @events.size }
      trigger&.call
      await(names, seen, patience, where)
    end

    # Waits for an event, even if it has come already.
    def wait_past(*names, patience: PATIENCE, **where) = await(names, 0, patience, where)

    def wait_until_current = wait_past("generation.current")

    # Retries until it is accepted: the processes of the last rollout must have exited, and after a failure the next
    # attempt has to wait.
    def refork(patience: PATIENCE)
      wait_for_leavers
      deadline = now + patience
      until wait_for("refork.started", "refork.refused") { signal("USR2") }["event"] == "refork.started"
        raise "no refork was granted within #{patience} s\n#{tail}" if now > deadline

        IO.select(nil, nil, nil, Waiting::POLL_INTERVAL)
      end
      wait_past("refork.finished", generation: events("refork.started").last["generation"], patience: patience)
    end

    # Waits until all processes that were told to exit are gone: a refork has already finished when their successors
    # serve. Those that may keep their connections first (`drain`) are left alone.
    def wait_for_leavers
      gone = [*events("worker.exited"), *events("worker.lost")].map { |event| event["pid"] }
      left = events("worker.leaving").reject { |event| event["drain"] }.map { |event| event["pid"] } - gone
      left.each { |pid| wait_past("worker.exited", "worker.lost", pid: pid) }
    end

    def connect = UNIXSocket.new(@socket_path)

    # @return [Response]
    def get(path, headers = {}) = request("GET", path, headers)

    def request(method, path, headers = {}, body = nil)
      socket = connect
      fields = { "Host" => "localhost", "Connection" => "close" }.merge(headers)
      fields["Content-Length"] = body.bytesize.to_s if body
      socket.write("#{method} #{path} HTTP/1.1\r\n#{fields.map { |k, v| "#{k}: #{v}\r\n" }.join}\r\n#{body}")
      parse(socket.read)
    ensure
      socket&.close
    end

    # Waits until that many workers are serving a request.
    def wait_until_busy(count)
      deadline = now + PATIENCE
      until workers.count { |worker| worker.title.end_with?("busy") } >= count
        raise "not #{count} busy workers within #{PATIENCE} s: #{workers.map(&:title)}" if now > deadline

        IO.select(nil, nil, nil, Waiting::POLL_INTERVAL)
      end
    end

    def signal(name) = Process.kill(name, @pid)

    # Sends it again once the first one has been noticed, and late enough not to count as a repetition.
    def signal_again(name)
      IO.select(nil, nil, nil, Pando::Cluster::Signals::ONE * 1.5)
      signal(name)
    end

    def alive? = @status.nil? && !@waiter.join(0)
    def tree = ProcTree.new(@pid)
    def workers = tree.titled("worker")
    def nodes(kind) = tree.titled(kind)
    def mold = tree.titled("mold").max_by { |process| process.title[/gen (\d+)/, 1].to_i }

    # @return [Process::Status]
    def stop(signal = "TERM")
      signal(signal) if @waiter.alive?
      wait_for_exit
    end

    # @return [Process::Status]
    def wait_for_exit(patience = PATIENCE)
      raise "the server did not end within #{patience} s\n#{@output}" unless @waiter.join(patience)

      @reader.join(PATIENCE)
      FileUtils.rm_rf(@own_folder) if @own_folder
      @waiter.value
    end

    # The monitor, its children, their children and orphans: they all share a working directory.
    #
    # @return [Array<ProcTree::Entry>] the running ones
    def processes = ProcTree.in_folder(@folder)

    # Whatever happened in a test, no process may survive it.
    def kill
      [@pid, *processes.map(&:pid)].each { |pid| Process.kill("KILL", pid) rescue nil } if @waiter.alive? # rubocop:disable Style/RescueModifier
      @waiter.join
      processes.each { |process| Process.kill("KILL", process.pid) rescue nil } # rubocop:disable Style/RescueModifier
      @reader.join(PATIENCE)
      FileUtils.rm_rf(@own_folder) if @own_folder
    end

    private

    # @return [Array<String>] options that name the config file
    def write_app(app, config)
      write("config.ru", app)
      write("pando.rb", "log_format :json; log_level :info; rollout canary: false\n#{config}")
      ["-c", "pando.rb"]
    end

    def listen_flag(listen) = listen == false ? [] : ["-l", listen || "unix:#{@socket_path}"]

    # Tests use the production environment unless a test says otherwise.
    def with_environment(env)
      %w[RAILS_ENV RACK_ENV APP_ENV].any? { |name| env.key?(name) } ? env : { "RACK_ENV" => "production", **env }
    end

    def launch(wrapper, arguments, env, unsetenv)
      env = with_environment(env)
      reader, writer = IO.pipe
      @pid = Process.spawn(env, *wrapper, *command(arguments), chdir: @folder, out: writer, err: writer,
                                                               in: File::NULL, unsetenv_others: unsetenv)
      writer.close
      @waiter = Process.detach(@pid)
      @reader = Thread.new do
        reader.each_line { |line| take(line) }
        @lock.synchronize { (@ended = true) && @news.broadcast }
      end
    end

    def command(arguments)
      return [*@program, *arguments] if @program

      [RbConfig.ruby, "-W0", "-I", File.join(@code, "lib"), File.join(@code, "exe/pando"), *arguments]
    end

    def take(line)
      event = EventLine.parse(line)
      @lock.synchronize do
        @output << line
        @events << event if event
        @news.broadcast
      end
    end

    def await(names, from, patience, where)
      deadline = now + patience
      wanted = where.transform_keys(&:to_s)
      @lock.synchronize do
        loop do
          found = @events.drop(from).find { |event| names.include?(event["event"]) && wanted <= event }
          return found if found

          left = deadline - now
          missing = "no #{names.join(" or ")} #{where}"
          raise "#{missing} within #{patience} s; the server said:\n#{tail}" if left <= 0
          raise "#{missing}, but the server has ended; it said:\n#{tail}" if @ended

          @news.wait(@lock, left)
        end
      end
    end

    def now = FairClock.now
    def tail = @output[-6000..] || @output

    def parse(text)
      raise EOFError, "the connection was closed without an answer" if text.nil? || text.empty?

      head, body = text.split("\r\n\r\n", 2)
      status, *fields = head.split("\r\n")
      headers = fields.to_h { |field| field.split(/:\s*/, 2).then { |name, value| [name.downcase, value] } }
      Response.new(status[/ (\d{3})/, 1].to_i, headers, body)
    end
  end
end
