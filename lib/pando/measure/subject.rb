# frozen_string_literal: true

require "fileutils"
require "rbconfig"
require "socket"
require "pando/measure/advice"
require "pando/measure/process_tree"
require "pando/server/launch"
require "pando/sys"

module Pando
  module Measure
    # A server under measurement: a real one, with the user's application, on a free port of the loopback interface.
    # Its pid file, its control socket and its output are in a temporary folder. Owned by the process of the command,
    # and ends with it. A subclass says how the server is started.
    #
    # @api private
    class Subject
      LAUNCHER = File.expand_path("launcher.rb", __dir__)
      A_MOMENT = 0.05 # seconds
      STOP_WITHIN = 10.0 # seconds
      # Variables that belong to the user's regular server: they would start jobs or notify a service manager.
      FOREIGN = %w[PORT PIDFILE WEB_CONCURRENCY SOLID_QUEUE_IN_PUMA NOTIFY_SOCKET LISTEN_FDS LISTEN_PID LISTEN_FDNAMES
                   WATCHDOG_USEC WATCHDOG_PID].freeze

      # @return [Integer]
      attr_reader :port
      # @return [ProcessTree]
      attr_reader :tree

      # @param config [Config] of the application
      # @param workers [Integer]
      # @param folder [String] that is empty
      def initialize(config, workers:, folder:)
        @config = config
        @workers = workers
        @folder = folder
      end

      # @!method name
      #   @return [String] "Puma"
      # @!method facts
      #   @return [Hash{Symbol => Object}] its settings, once it is ready

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
      # @raise [NotMeasured]
      def await
        deadline = Sys.now + @config.boot_timeout
        until ready?
          raise failure("the server ended before it was ready") unless @waiter.alive?
          raise failure("the server was not ready within #{@config.boot_timeout.round} s") if Sys.now > deadline

          sleep A_MOMENT
        end
      end

      # @return [Boolean]
      def alive? = @waiter&.alive? || false

      # @param summary [String]
      # @return [NotMeasured]
      def failure(summary) = NotMeasured.because_of([self], summary)

      # @return [String, nil] what to do about the errors in its output
      def advice = Advice.on(output, @config.environment)

      # @return [String] the end of its output
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

      # @param pid [Integer]
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

      def environment
        names = Server::AppEnvironment::VARIABLES.first(2).to_h { |name| [name, @config.environment] }
        FOREIGN.to_h { |name| [name, nil] }.merge(names)
      end

      def ruby = [RbConfig.ruby, *Server::Launch.jit]
      def path(name) = File.join(@folder, name)
      def output_path = path("output")
      def error_path = path("errors")

      # The output of the server and the application.
      def output = [output_path, error_path].map { |file| Advice.read(file) }.join("\n").strip
    end
  end
end
