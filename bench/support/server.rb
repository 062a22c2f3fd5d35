# frozen_string_literal: true

require "io/wait"
require "socket"
require "support/guard"
require "support/process_tree"

module Bench
  # One server under test, started in its own process group. A subclass says how the server is started and how to read
  # its processes' titles. Everything else is the same for every server.
  class Server
    class Failed < StandardError; end

    START_WITHIN = 120 # seconds
    REFORK_WITHIN = 180
    STOP_WITHIN = 15
    ANSWER_WITHIN = 5
    OPEN_FILES = [Process.getrlimit(:NOFILE).last, 65_536].min # a benchmark may hold many connections
    SETTLED_FOR = 0.5
    POLL_INTERVAL = 0.05

    attr_reader :port, :pid, :folder

    # @param app [String] path of the rackup file
    # @param folder [String] an empty folder to run in, so that no other configuration is found
    # @param environment [Hash{String => String, nil}]
    # @param workers [Integer] processes (half as many for a server with two threads each)
    # @param cores [String, nil] the only CPUs that it may use, as for taskset(1)
    # @param prefix [Array<String>] the beginning of the command line: a program that execs the server
    def initialize(app:, folder:, environment:, workers:, cores: nil, prefix: [])
      @app = app
      @folder = folder
      @environment = environment
      @workers = workers
      @cores = cores
      @prefix = prefix
      @port = TCPServer.open("127.0.0.1", 0) { |server| server.addr[1] }
    end

    # @return [String] its name in the report
    def label = raise(NotImplementedError)

    # @return [Array<String>] the command line
    def command = raise(NotImplementedError)

    # The title of a serving worker, with a group named "generation" if the server has generations.
    #
    # @return [Regexp, nil] nil: its workers cannot be identified
    def worker_title = nil

    # The title of any process of a generation, with a group named "generation".
    #
    # @return [Regexp, nil] nil: this server does not refork
    def generation_title = nil

    # @return [Integer] worker processes
    def processes = @workers

    # @return [Integer] requests that it can serve at the same time
    def capacity = @workers

    # Runs the server for as long as the block runs.
    def run
      start
      yield self
    ensure
      stop
    end

    # Requests a refork and waits until it has settled: all workers are there, have not changed for a while, and belong
    # to a later generation.
    def refork
      before = generations.max
      Process.kill(:USR2, @pid)
      wait_until(REFORK_WITHIN, "the refork") { all_workers? && generations.min > before && settled? }
    end

    def reforks? = !generation_title.nil?

    # @return [Array<Integer>] pids of all of its processes
    def pids = tree.pids

    # @return [Array<Integer>] pids of those that serve
    def worker_pids = worker_title ? tree.titles.select { |_pid, title| worker_title.match?(title) }.keys : pids

    # @return [Array<Integer>] pids of processes with such a title
    def pids_of(title) = tree.titles.select { |_pid, text| title.match?(text) }.keys

    def output = File.read(log)

    private

    def tree = ProcessTree.new(@pid)
    def titles = tree.titles.values
    def log = File.join(@folder, "server.log")
    def all_workers? = worker_title ? worker_pids.size == processes : settled?

    def settled?
      found = pids
      sleep SETTLED_FOR
      found == pids
    end

    def generations = titles.filter_map { |title| title[generation_title, :generation]&.to_i }

    def start
      @pid = Process.spawn(@environment, *@prefix, *pinning, *command,
                           chdir: @folder, pgroup: true, in: File::NULL, out: log, err: %i[child out],
                           rlimit_nofile: OPEN_FILES)
      @guard = Guard.new(@pid)
      wait_until(START_WITHIN, "its start") { answers? && all_workers? }
    end

    def pinning = @cores ? ["taskset", "-c", @cores] : []

    def answers?
      Socket.tcp("127.0.0.1", port, connect_timeout: 5) do |socket|
        socket.write("GET /up HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
        socket.wait_readable(ANSWER_WITHIN) && # 404: the app has no such page
          socket.readpartial(64).match?(%r{\AHTTP/1.1 (?:200|404) })
      end
    rescue SystemCallError, IOError
      false
    end

    def stop
      return unless @pid

      signal(:TERM)
      waiter = Process.detach(@pid)
      signal(:KILL) unless waiter.join(STOP_WITHIN)
    ensure
      signal(:KILL, group: true)
      @guard&.release
    end

    def signal(name, group: false)
      Process.kill(name, group ? -@pid : @pid) if @pid
    rescue Errno::ESRCH
      # The process has ended.
    end

    def wait_until(seconds, what)
      deadline = now + seconds
      until yield
        raise Failed, "#{label}: ended during #{what}\n#{tail}" if tree.pids.empty?
        raise Failed, "#{label}: #{what} took more than #{seconds} s\n#{tail}" if now > deadline

        sleep POLL_INTERVAL
      end
    end

    def tail = output.lines.last(20).join
    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end
end
