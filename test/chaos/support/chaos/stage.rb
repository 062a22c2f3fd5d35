# frozen_string_literal: true

require "fileutils"
require "rbconfig"
require "support/c_program"
require "support/checkout"
require "support/event_line"
require "support/limited_user"
require "support/ports"
require "support/proc_tree"
require "tmpdir"

module Chaos
  # The server under test: the real executable in its own folder, with releases behind a link, and with its own small
  # disk for spools, wall clock and user, as far as the machine supports them.
  class Stage
    include Support::Ports

    FILES = File.join(__dir__, "stage")
    # Files of a release: its config.ru and its pando.rb.
    GOOD = %w[config.ru pando.rb].map { |name| File.read(File.join(FILES, name)).freeze }.freeze
    WORKERS = 4
    NODES = 3 # the fewest whose mold is let go
    APART = 2
    DISK = 6 # MiB

    attr_reader :folder, :pid, :port, :user

    # @param log [IO] gets the server's output
    # @param options [Options]
    # @yieldparam event [Hash] each of its events, in a thread
    def initialize(log, options, &hear)
      @log = log
      @hear = hear
      @options = options
      @port = free_port
      @folder = Dir.mktmpdir("pando-chaos")
      @user = (user = Support::LimitedUser.new).obstacle ? nil : user
      @own_disk = Process.uid.zero? && system(*private_mounts, "true", err: File::NULL)
      @release = 0
      @releases = Mutex.new
      lay_out
    end

    def start
      reader, writer = IO.pipe
      reader.fcntl(1031, 1 << 20) # F_SETPIPE_SZ: so large that the server never waits for us
      streams = { in: File::NULL, out: writer, err: writer }
      @pid = Process.spawn(environment, *wrapper, *command, chdir: @folder, rlimit_core: 0, **streams)
      writer.close
      @waiter = Process.detach(@pid)
      @reader = Thread.new { reader.each_line { |line| take(line) } }
    end

    def direct? = @options.direct
    # @return [Boolean] whether some paths have a pool of their own
    def pools? = @options.pools

    # @return [Hash{String => Integer}] its processes in a steady state, without those of its pools
    def cast = { "service" => 1, **(direct? ? {} : { "reactor" => 1 }) }

    def alive? = @waiter.alive?
    def signal(name) = Process.kill(name, @pid)
    def path(*names) = File.join(@folder, *names)
    def socket = path("pando.sock")
    def journal = path("journal")
    def job_journal = path("jobs.journal")
    # @return [Boolean] whether its spools are on a separate disk
    def disk? = @own_disk
    # The path at which we see that disk.
    def disk = "/proc/#{@pid}/root#{path("spool")}"
    def wall_clock? = !@clock.nil?
    def jump(seconds) = File.binwrite(path("clock"), [seconds].pack("q"), mode: "r+b")

    # A prefix for commands that run with the rights of the server's user.
    def as_its_user = @user ? @user.wrapper : []

    # Adds a job for a node.
    # @param text [String] seconds that it takes
    def order(job, text)
      File.write(path("jobs", "new", job), text)
      File.rename(path("jobs", "new", job), path("jobs", "inbox", job))
    end

    # @return [Array<String>] jobs that no node has taken
    def jobs_waiting = Dir.children(path("jobs", "inbox"))

    # @return [Array<String>] jobs that a node has taken and neither done nor given back
    def jobs_taken = Dir.glob("*/*", base: path("jobs", "taken")).map { |name| File.basename(name) }

    # Makes another good release and points `current` to it.
    def release = @releases.synchronize { link(@good = add_release(*GOOD)) }

    # Makes a bad release, until #restore.
    # @yieldparam rackup [String] of a good release @yieldparam config [String] of a good release
    # @yieldreturn [Array(String, String)]
    def spoil = @releases.synchronize { link(add_release(*yield(*GOOD))) }

    # Makes a new good release, because faults overlap and the previous target of `current` may be another bad one.
    def restore = @releases.synchronize { link(@good) }

    # Compares a part of the path: in a chroot, the path of a process with its own mounts begins with the chroot's.
    #
    # @return [Array<Support::ProcTree::Entry>] all processes that work in our folder, whatever their parent is
    def processes
      Support::ProcTree.all.select do |entry|
        File.readlink("/proc/#{entry.pid}/cwd").include?(@folder)
      rescue SystemCallError
        false
      end
    end

    # @return [Process::Status, nil] nil: the server did not end
    def stop(patience)
      Process.kill("TERM", @pid)
      status = @waiter.join(patience)&.value
      @reader.join(5) if status
      status
    end

    # Kills all remaining processes, whatever happened.
    def clean_up
      [@pid, *processes.map(&:pid)].compact.each { |pid| Process.kill("KILL", pid) rescue nil } # rubocop:disable Style/RescueModifier
      @waiter&.join
      processes.each { |process| Process.kill("KILL", process.pid) rescue nil } # rubocop:disable Style/RescueModifier
      FileUtils.rm_rf(@folder)
    end

    private

    def job_folders = [path("jobs"), *%w[inbox taken new].map { |name| path("jobs", name) }]

    def lay_out
      %w[stuck spool releases].each { |name| FileUtils.mkdir_p(path(name)) }
      FileUtils.chmod(0o1777, path("spool"))
      FileUtils.mkdir_p(job_folders)
      [@folder, path("stuck"), *job_folders].each { |name| FileUtils.chmod(0o777, name) }
      File.binwrite(path("clock"), [0].pack("q"))
      @clock = wall_clock
      release
    end

    # @return [String, nil] path of a library; nil: this machine has no compiler
    def wall_clock
      Support::CProgram.library("wall_clock")
    rescue RuntimeError, SystemCallError
      nil
    end

    def link(name)
      FileUtils.rm_f(path("next"))
      File.symlink(name, path("next"))
      File.rename(path("next"), path("current"))
    end

    def add_release(rackup, config)
      name = "releases/#{@release += 1}"
      FileUtils.mkdir_p(path(name))
      File.write(path(name, "config.ru"), rackup)
      File.write(path(name, "pando.rb"), config)
      name
    end

    def environment
      { "CHAOS_FOLDER" => @folder, "CHAOS_STAGE" => FILES, "CHAOS_PORT" => @port.to_s, "CHAOS_JOURNAL" => journal,
        "CHAOS_WORKERS" => WORKERS.to_s, "CHAOS_REACTOR" => (!direct?).to_s,
        "CHAOS_MOLD" => @options.release ? "release" : "keep", "CHAOS_THREADS" => @options.threads || "1",
        **(@options.nodes ? { "CHAOS_NODES" => [NODES, *@options.node_manners].join(" ") } : {}),
        **(pools? ? { "CHAOS_APART" => APART.to_s } : {}), "TMPDIR" => path("spool"),
        **(@clock ? { "LD_PRELOAD" => @clock, "PANDO_WALL_CLOCK" => path("clock") } : {}) }
    end

    def private_mounts = %w[unshare --mount]

    # The mount ends with the last process that can see it.
    def wrapper
      return as_its_user unless @own_disk

      mount = %(mount -t tmpfs -o size=#{DISK}m,mode=1777 spool "$0" && exec "$@")
      [*private_mounts, "sh", "-c", mount, path("spool"), *as_its_user]
    end

    def command
      [RbConfig.ruby, "-W0", "-I", Support::Checkout.path("lib"), Support::Checkout.path("exe/pando"),
       "-C", path("current"), "-c", "pando.rb"]
    end

    def take(line)
      @log.write("#{Chaos.now.round(3)} #{line}")
      event = Support::EventLine.parse(line)
      @hear.call(event) if event
    end
  end
end
