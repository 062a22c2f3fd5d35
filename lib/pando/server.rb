# frozen_string_literal: true

require "pando/cluster"
require "pando/compat/notices"
require "pando/config"
require "pando/server/app_environment"
require "pando/server/kinds"
require "pando/server/launch"
require "pando/server/start_mode"
require "pando/telemetry/log"

module Pando
  # Connects the parts: the configuration, the cluster, and the application that its workers serve. There is one
  # instance in the monitor, and another in each mold and all its descendants. Hooks get it as their first argument,
  # and may use what is marked as public.
  #
  # @api private
  class Server
    # The descriptor of the standard error.
    ERRORS = 2
    private_constant :ERRORS

    # @return [Config]
    # @api public
    attr_reader :config
    # @return [Cluster::Mold, Cluster::Worker, Cluster::Service, nil] the role of this process; nil in the monitor
    # @api public
    attr_accessor :role

    # @param config [Config]
    # @api public
    def initialize(config)
      @config = config
      @inherited = Cluster::Listening::Inherited.none
    end

    # Runs the monitor until the server stops, in the process of the `pando` command.
    #
    # @return [Integer] exit status: 0 after a regular stop, 1 if nothing could be served
    # @raise [BootError] an address cannot be listened on
    # @api public
    def run = prepare.run

    # @return [Cluster::Monitor] ready to run
    # @raise [BootError] an address cannot be listened on
    def prepare
      check_proc
      require "pando/server/payload"
      StartMode.enter { |start| monitor(start) }
    end

    # Without a setting, sockets from a service manager take precedence over the default address.
    def listen(config)
      return [] if config.workers.zero?
      return config.listen unless @inherited.any? && config.default?(:listen)

      [Config::Listen.parse(Config::Listen::SYSTEMD)]
    end

    # Attaches the log and the user's event blocks. The monitor and each mold call it first.
    def subscribe
      Telemetry::Log.attach(stderr, format: config.log_format, level: config.log_level)
      listen_to_events
    end

    # An object of the log's own, because the app or the config file may close $stderr. Ruby leaves its descriptor open.
    def stderr
      return $stderr unless $stderr.is_a?(IO) && ($stderr.closed? || $stderr.fileno == ERRORS)

      IO.for_fd(ERRORS, "w", autoclose: false)
    rescue IOError, SystemCallError
      $stderr # it has just been closed, or is open for reading only
    end

    # Adopts a reloaded configuration, in the monitor.
    def renew(config)
      return if config.equal?(@config) # another pool's payload has called this

      @config = config
      @subscriptions.each { |subscription| Events.unsubscribe(subscription) }
      listen_to_events
    end

    # @param pool [String] the name of the kind of worker
    # @raise [BootError] there is no such kind
    def payload(pool = Kinds.names(config).first) = Kinds.payload(self, pool)

    private

    def monitor(start)
      subscribe unless start.rehearsal?
      check_logs if start.fresh?
      Compat::Notices.new(config).tell if start.fresh?
      warn_of_variables unless start.rehearsal?
      @inherited = start.inherited_sockets
      Cluster::Monitor.new(payload, listen(config), policy, Launch.mold(config), start)
    end

    def check_proc
      return if File.exist?("/proc/self/stat")

      raise BootError, "there is no /proc, where Pando reads what its processes use: mount it, as `mount -t proc " \
                       "proc /proc` does"
    end

    def check_logs
      check_log("access_log", config.access_log)
      check_log("slow_log", config.slow_log && config.slow_log_file)
    end

    # Whether other processes can write the file, as far as that can be known now. Makes it if it is missing.
    def check_log(setting, path)
      return if path.nil? || path == "-" # standard output
      return if File.pipe?(path) # to open one without a reader takes for ever

      File.open(path, File::WRONLY | File::APPEND | File::CREAT, 0o640, &:close)
    rescue SystemCallError => e
      raise BootError, "#{setting} cannot be written: #{e.message.sub(" @ rb_sysopen", "")}. Make the folder, let " \
                       "the server's user write there, or name another file"
    end

    def warn_of_variables
      reason = AppEnvironment.new(config).contradiction
      Events.emit("environment.contradictory", environment: config.environment, reason: reason) if reason
    end

    def policy = Kinds.policy(config, Kinds.names(config).first)

    def listen_to_events
      @subscriptions = config.subscriptions.map { |one| Events.subscribe(one.name, &one.block) }
    end
  end
end
