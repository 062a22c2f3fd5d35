# frozen_string_literal: true

require "json"
require "rbconfig"
require "socket"
require "pando/config"
require "pando/errors"
require "pando/measure/process_tree"
require "pando/server/app_environment"
require "pando/server/cluster_options"
require "pando/server/launch"
require "pando/server/reexec_without_gems"
require "pando/sys"
require "pando/version"

module Pando
  module Measure
    # A server under measurement: a real one, with the user's application, on a free port of the loopback interface.
    # Its pid file, its control socket and its output are in a temporary folder. Owned by the process of the command,
    # and ends with it. A subclass says how the server is started, has its `name`, and its `facts`: the settings in
    # effect once it is ready.
    class Subject
      LAUNCHER = File.expand_path("launcher.rb", __dir__)
      A_MOMENT = 0.05 # seconds
      STOP_WITHIN = 10.0 # seconds
      # Variables that belong to the user's regular server: they would start jobs or notify a service manager.
      FOREIGN = %w[PORT PIDFILE WEB_CONCURRENCY SOLID_QUEUE_IN_PUMA NOTIFY_SOCKET LISTEN_FDS LISTEN_PID LISTEN_FDNAMES
                   WATCHDOG_USEC WATCHDOG_PID].freeze

      attr_reader :port, :tree

      # @param folder [String] that is empty
      def initialize(config, workers:, folder:)
        @config = config
        @workers = workers
        @folder = folder
      end

      # Starts the server, which then loads the application.
      def start
        @port = TCPServer.open("127.0.0.1", 0) { |listener| listener.addr[1] }
        # The launcher must not load anything of the application.
        launch = [RbConfig.ruby, "--disable=gems", *Server::Launch.load_path, LAUNCHER, Process.pid.to_s,
                  ENV.fetch("RUBYOPT", "")]
        @pid = Process.spawn(environment.merge("RUBYOPT" => nil), *launch, *command, chdir: @config.directory,
                                                                                     in: File::NULL, pgroup: true,
                                                                                     out: output_path, err: error_path)
        @waiter = Process.detach(@pid)
        @tree = ProcessTree.new(@pid, worker)
      end

      # Waits until all its workers run and it answers.
      def await
        deadline = Sys.now + @config.boot_timeout
        until ready?
          raise failure("the server ended before it was ready") unless @waiter.alive?
          raise failure("the server was not ready within #{@config.boot_timeout.round} s") if Sys.now > deadline

          sleep A_MOMENT
        end
      end

      def alive? = @waiter&.alive? || false
      def failure(summary) = NotMeasured.because_of([self], summary)

      # @return [String, nil] what to do about the errors in its output
      def advice = Advice.on(output, @config.environment)

      def last_words = Advice.last_words(output)

      # Asks the server to stop. See {#finish}.
      def stop
        Process.kill(:TERM, @pid) if alive?
      rescue Errno::ESRCH
        nil
      end

      # Waits for its end, and kills the processes that do not end in time. The caller must end the descendants that are
      # left: they have become its children.
      def finish
        return unless @waiter
        return if @waiter.join(STOP_WITHIN)

        @tree.pids.reverse_each { |pid| Subject.kill(pid) }
        @waiter.join
      end

      # @return [Hash{String => String, nil}] the environment of a process that loads the application
      def self.environment(config)
        names = Server::AppEnvironment::VARIABLES.first(2).to_h { |name| [name, config.environment] }
        FOREIGN.to_h { |name| [name, nil] }.merge(names)
      end

      def self.kill(pid)
        Process.kill(:KILL, pid)
      rescue Errno::ESRCH
        nil
      end

      private

      def ready? = listening? && tree.workers.size >= @workers

      def listening?
        Socket.tcp("127.0.0.1", port, connect_timeout: 1).close
        true
      rescue SystemCallError
        false
      end

      def environment = Subject.environment(@config)
      def ruby = [RbConfig.ruby, *Server::Launch.jit]
      def path(name) = File.join(@folder, name)
      def output_path = path("output")
      def error_path = path("errors")

      # The output of the server and the application.
      def output = [output_path, error_path].map { |file| Advice.read(file) }.join("\n").strip
    end

    # Puma of the application's bundle, with its config file, except for addresses and files. A plug-in that runs jobs
    # is left out. Without a config file Puma preloads the application and runs the given number of workers.
    class PumaSubject < Subject
      # Config files that Puma evaluates before the user's file and after it.
      BEFORE = <<~RUBY
        def plugin(name) = name.to_s == "solid_queue" ? puts("pando measure: plugin :solid_queue is left out") : super
      RUBY
      AFTER = <<~RUBY
        %i[pidfile state control_url control_auth_token redirect_stdout redirect_stderr daemon]
          .each { |name| @options.delete(name) }
        @options[:binds] = []
      RUBY
      LEFT_OUT = /pando measure: (.*) is left out/

      # @return [String, nil] Puma's program, from the bundle if there is one; nil: Puma is not installed
      def self.program
        Gem.bin_path("puma", "puma")
      rescue Gem::Exception, LoadError # the latter from Bundler
        nil
      end

      def name = "Puma"

      # Puma prints the settings that are in effect, whatever the file says.
      def facts
        said = output
        { version: said[/Puma version: (\S+)/, 1] || Gem.loaded_specs["puma"]&.version&.to_s, config: user_file,
          workers: said[/Workers: (\d+)/, 1]&.to_i || @workers, threads: threads(said),
          preloaded: said.include?("Preloading application"), allocator: tree.allocator, jit: tree.jit,
          left_out: said.scan(LEFT_OUT).flatten.uniq }
      end

      private

      # Workers that load the application themselves have their title before they have loaded it.
      def ready?
        return false unless super

        said = output
        said.include?("Preloading application") || said.scan(/Worker (\d+) .*booted/).uniq.size >= @workers
      end

      def worker = /\Apuma: cluster worker\b/

      def threads(said)
        %w[Min Max].map { |word| said[/#{word} threads: (\d+)/, 1]&.to_i }
      end

      # The file that Puma reads by default.
      def user_file
        ["config/puma/#{@config.environment}.rb", "config/puma.rb"]
          .find { |name| File.file?(File.join(@config.directory, name)) }
      end

      def command
        files = [write("before.rb", BEFORE), user_file, write("after.rb", AFTER)].compact
        [*ruby, PumaSubject.program, *files.flat_map { |file| ["-C", file] }, "-e", @config.environment,
         "-w", @workers.to_s, "-b", address, *("--preload" unless user_file), @config.rackup]
      end

      def address = "tcp://127.0.0.1:#{port}"
      def write(name, text) = path(name).tap { |file| File.write(file, text) }
      def environment = super.merge("WEB_CONCURRENCY" => @workers.to_s)
    end

    # Pando with the user's config file, except for addresses and files. Job nodes, services and the admin process are
    # left out: their work is not compared, and the user's regular server does it already.
    class PandoSubject < Subject
      OURS = %i[listen control admin pidfile workers environment log_format log_level config_file].freeze
      # A minute of the load stands for many of production, see Server::TimeScale.
      TIME_SCALE = "10"
      REDUCED_CONFIG = <<~RUBY
        def node(*, **) = nil
        def service(*) = nil
        def admin(*, **) = nil
        eval(File.read(%<path>s, encoding: Encoding::UTF_8), binding, %<path>s, 1)
      RUBY

      def name = "Pando"

      def facts
        { version: VERSION, config: @config.short(@config.config_file), workers: @workers,
          threads: threads, preloaded: true, allocator: tree.allocator, jit: tree.jit, refork: refork, scale: scale,
          left_out: left_out, reforks: events("refork.finished"), discarded: events("generation.discarded") }
      end

      # @return [String] the errors in its log, each once
      def last_words = Advice.last_words(output.each_line.filter_map { |line| plain(line) }.uniq.join)

      private

      # @param line [String] of the application's output, or of the log, which is in JSON
      # @return [String, nil] the line for a human; nil: it is not needed
      def plain(line)
        return line unless line.start_with?("{") && (event = JSON.parse(line)).key?("event")
        return if event["level"] == "info"

        error = event["error"]
        error.is_a?(Hash) ? "#{event["event"]}: #{brief(error)}\n" : line
      rescue JSON::ParserError
        line
      end

      def brief(error)
        place = Array(error["backtrace"]).first
        "#{error["class"]}: #{error["message"]}#{" (#{place})" if place}"
      end

      def worker = /\Apando worker\b/

      def command
        flags = Config::Flags.parse(@config.argv)
        [*ruby, *Server::Launch.load_path, Server::ReexecWithoutGems::PROGRAM, "serve",
         *flags.argv(except: OURS, more: own_flags)]
      end

      def own_flags
        ["-e", @config.environment, "-w", @workers.to_s, "-l", "127.0.0.1:#{port}",
         "--control", path("control"), "--pidfile", path("pid"), "--log-format", "json", "--log-level", "info",
         *(["-c", config_file] if @config.config_file)]
      end

      def environment = super.merge(Server::TimeScale::VARIABLE => scale)
      def scale = ENV.fetch(Server::TimeScale::VARIABLE, TIME_SCALE)

      def config_file
        return @config.config_file if left_out.empty?

        path("pando.rb").tap { |file| File.write(file, format(REDUCED_CONFIG, path: @config.config_file.dump)) }
      end

      def left_out
        [*@config.node_lines.map { |line| "node #{line.name.inspect}" },
         *@config.services.keys.map { |name| "service #{name.inspect}" },
         *("admin" if @config.admin.any?)]
      end

      def refork = @config.entries(:refork).last.then { |entry| Config::Settings[:refork].write(entry.value) }

      # @return [Array(Integer, Integer)] the fewest and the most of a worker
      def threads
        most = Config::Threads.count(@config.with(workers: @workers))
        [@config.threads == :auto ? 1 : most, most]
      end

      # The log has a line for each event, with the application's lines in between.
      def events(name)
        Advice.read(error_path).each_line.count do |line|
          line.start_with?("{") && line.include?("\"#{name}\"") && JSON.parse(line)["event"] == name
        rescue JSON::ParserError
          false
        end
      end
    end

    # Nothing could be measured; the message says why, and what to do. The command exits with status 2.
    class NotMeasured < Error
      # @param subjects [Array<Subject>] that have failed
      # @return [NotMeasured] with the end of their output, and what to do about it
      def self.because_of(subjects, summary)
        said = subjects.reject { |subject| subject.last_words.empty? }.flat_map do |subject|
          [*("Output of #{subject.name}:" if subjects.size > 1), subject.last_words]
        end
        advice = subjects.filter_map(&:advice).uniq
        new(["#{subjects.map(&:name).join(" and ")}: #{summary}", *advice, *said].join("\n"))
      end
    end

    # Advice for an application that does not boot or answer, chosen by its output.
    module Advice
      SECRET = "The application has no secret_key_base in the %<environment>s environment. For the measurement, " \
               "set SECRET_KEY_BASE_DUMMY=1 (Rails 7.1 or newer) or SECRET_KEY_BASE to any long text. To measure in " \
               "another environment, use -e NAME."
      MASTER_KEY = "The credentials of the %<environment>s environment cannot be decrypted. Put their key into " \
                   "config/master.key or RAILS_MASTER_KEY."
      DATABASE = "The database of the %<environment>s environment may be missing. Create it with " \
                 "`RAILS_ENV=%<environment>s bin/rails db:prepare`, or measure in another environment with -e NAME."
      HOST = "The application may answer to its own host name only. Send it with --header \"Host: www.example.com\"."
      LOGIN = "The application may require a login. Send your browser's credentials with --header \"Cookie: ...\" or " \
              "--header \"Authorization: ...\"."

      KEYS_MISSING = /MessageEncryptor::InvalidMessage|MissingKeyError|Missing encryption key/
      NO_DATABASE = /NoDatabaseError|DatabaseConnectionError|ConnectionNotEstablished|UndefinedTable|no\ such\ table|
                     Could\ not\ find\ table|unable\ to\ open\ database|database\ .*does\ not\ exist/x
      # The lines of a backtrace after its first.
      BACKTRACE = /^\s+from .*\n?/
      LINES = 20
      KNOWN = { /secret_key_base/ => SECRET, KEYS_MISSING => MASTER_KEY, NO_DATABASE => DATABASE }.freeze

      def self.on(output, environment)
        words = KNOWN.find { |pattern, _| output.match?(pattern) }&.last
        words && format(words, environment: environment)
      end

      # The end of the output, without backtraces.
      def self.last_words(output) = output.gsub(BACKTRACE, "").lines.last(LINES).join.strip

      # The output of a process; empty if there is no such file.
      def self.read(path)
        File.exist?(path) ? File.read(path, mode: "rb").force_encoding(Encoding::UTF_8).scrub : ""
      end

      # @param statuses [Array<Integer>] of requests, all of which have failed
      def self.on_statuses(statuses)
        return LOGIN if statuses.include?(401)

        HOST if statuses.any? && statuses.all?(403)
      end
    end
  end
end
