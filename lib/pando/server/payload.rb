# frozen_string_literal: true

require "forwardable"
require "pando/current_role"
require "pando/refork/collector"
require "pando/server/app_environment"
require "pando/server/cluster_options"
require "pando/server/jit"
require "pando/server/release_directory" # not when it is needed: there may be no free descriptor to read it
require "pando/server/start_settings" # likewise: the release may be gone

module Pando
  class Server
    # A Rack application and what surrounds it, as the cluster carries it: Cluster calls these methods and knows nothing
    # else of the application. One instance lives in the monitor and only answers for options and hooks. Another one
    # lives in the mold and loads the application, and all that is forked from the mold inherits it.
    class Payload
      include Cluster::Brief
      extend Forwardable

      def initialize(server)
        @server = server
        @config = @first = server.config
      end

      # In the monitor.

      # @return [String] the name of the pool, for events, status and commands if there are several; letters, digits and
      #   underscores
      def name = Config::WEB

      # The other kinds of workers, each in its own pool.
      def companions = Kinds.companions(@server)

      def options = @options ||= options_of(@config)

      # Fields of `server.ready` beside those of the monitor.
      # @param listen [Array<String>] the addresses
      # @return [Hash{Symbol => String}] the environment, and the URL of the first address that a browser can open
      def introduction(listen)
        address = listen.find { |name| name.match?(/:\d+\z/) && !name.start_with?("unix:") }
        url = address && "http://#{address.sub(/\A(0\.0\.0\.0|\[::\]):/, "localhost:")}"
        { environment: @config.environment, url: url }.compact
      end

      # A mold is gone and another may have to boot: the working directory may have been removed and made again.
      def find_folder = ReleaseDirectory.find(@config.directory)

      # The settings that a start of the server would have now, for a reload.
      # @return [Renewal]
      # @raise [Pando::Error, SystemCallError] the configuration cannot be read
      def renew(poller)
        require "pando/server/renewal"
        Renewal.new(@server, @config, @first, settings_at_start, poller)
      end

      # @return [StartSettings] those of the running reactor. After an upgrade they are not those of this configuration,
      #   until another reactor is started
      def settings_at_start
        own = StartSettings.of(@first)
        return own unless @former_settings

        @reactor&.started? ? own.in_mode_of(@former_settings) : @former_settings
      end

      # @return [Array<String>] settings that need a restart, right after an upgrade
      def kept = settings_at_start.changed_in(@config)

      def to_state(state) = settings_at_start.to_state(state)

      def from_state(state) = @former_settings = StartSettings.from_state(state)

      # #options and hooks are those of the renewal from now on.
      def adopt(renewal)
        renewal.settle
        @config = own(renewal.config)
        @server.renew(renewal.config)
        fresh = options_of(@config)
        options.members.each { |name| options[name] = fresh[name] }
      end

      # For an upgrade: the command that would start the server now, in its working directory.
      # @yieldparam command [Array<String>] @yieldparam variables [Hash{String => String}] the environment
      # @raise [Pando::Error, SystemCallError]
      def successor(&start) = Launch.successor(@config, &start)

      # @return [Array<String>] writes the stacks of a process's threads to descriptor 3; the pid follows
      def examination_command = Launch.examination

      # The shared part of a reactor and its workers.
      # @param descriptors [Array<Integer>, nil] of the former image, after an upgrade; nil: there was none
      # @return [HTTP::ReactorSetup, nil] nil: workers accept by themselves (direct mode)
      def reactor(descriptors = nil)
        return unless descriptors || @config.reactor

        require "pando/http/reactor_setup"
        @reactor ||= HTTP::ReactorSetup.new(@config, descriptors)
      end

      # In the mold.

      # Runs once, in a cold boot.
      def load
        require "pando/server/fork_care"
        AppEnvironment.new(@server.config).apply
        Pando.serving = true
        $stdout.sync = true # a process that dies must not lose its output
        @care = ForkCare.new(@server)
        @care.begin
        load_first_request if @config.first_request_profile
        load_all
      end

      # Runs in the first pool's mold.
      # @return [Boolean] whether the workers of the pool with this name serve clients, too
      def serves?(name) = !Kinds.pool(@server.config, name).nil?

      # Runs in a process that is to be another pool's mold, forked from the first pool's cold-booted mold. Loads the
      # part of the application that is missing.
      # @return [Payload] of the pool with this name
      def become(name)
        Kinds.payload(@server, name).tap { |payload| payload.load_beside(@care, @app) }
      end

      # As #load, where another payload has loaded the application already.
      # @param care [ForkCare] of that payload @param app [#call] likewise
      def load_beside(care, app)
        @care = care
        @app = app
        Refork::Preparation.begin_anew
        load_all
      end

      # Does what each child would otherwise do for the first time, in memory of its own.
      def warm_up(role)
        tell_allocator(role)
        require "pando/pages/recording" # a worker that loads it later would do so in its private memory
        warm_up_http(role)
      end

      # Runs after the user's hooks.
      def prepare = Refork::Preparation.run(@config.gc_mold, prefault: prefault_terms)

      # Runs at the end of a mold's start, before its first fork. Its children will share its memory as it is now.
      def ready_to_fork(mold)
        @prefault&.begin_mold(mold)
        nil
      end

      # Examines which pages a worker has written to.
      # @param pagemap [Integer] a descriptor of /proc/PID/pagemap
      # @param memory [Integer, nil] one of /proc/PID/mem
      def observe(mold, pagemap, memory = nil)
        @prefault&.observe(mold, pagemap, memory)
        nil
      end

      # In the mold, around forks, and in the processes that are forked from the mold.

      # ForkCare says when each of them runs. #before_fork raises if the process must not be forked, #verify and #audit
      # if it must not become ready.
      def_delegators :@care, :self_check, :say_goodbye, :hang_up, :before_exit, :before_fork, :around_fork, :verify,
                     :audit, :tick, :finish_queues, :watch, :lost_thread, :state_seen

      # Runs in a worker or mold that is about to fork, before the user's hooks. Remembers what the hooks may end and
      # the new process needs again.
      def hand_down(of)
        return unless of == :mold

        @care.hand_down
        @reconnection&.note
        @prefault&.note_code(@server.role) if @server.role.role == :worker
      end

      # Runs in a new worker, after the user's hooks. Does what its first job would otherwise wait for.
      def take_up = @reconnection&.run

      # Runs in each new process, before any other code here and before its hooks. First the prefault, which makes the
      # rest faster.
      def after_fork(role, &step)
        role.role == :worker ? @prefault&.populate(role) : @prefault&.protect
        @care.after_fork(role, &step)
      end

      # @return [Integer] jobs that a worker may have at once, each with a lane of its own
      def threads = Config::Threads.count(@config)

      # @return [String] a worker's name in the list of processes
      def worker_name = "worker"

      # These must stay open in this process, whatever the application closes.
      def keep_open(ios) = Pando.keep_io(*ios)

      # @param role [Cluster::Role] the present one of this process
      def attach(role)
        Pando.current_role = @server.role = role
        keep_open(role.ios)
        ForkSafety.on_unsafe(&(tell_safety(role) if role.role == :worker))
        ForkSafety.on_callback_failure { |failure| tell(role, failure) }
      end

      # @param channel [IO, nil] to the reactor; nil: direct mode
      # @return [HTTP::Handler, Swarm::JobHandler] what a worker does
      def work(listeners, channel)
        return (@work ||= handler(@app, listeners, channel)).dup unless @first_request

        app = @first_request.wrap(@app, @server.role)
        handler(app, listeners, channel).tap { |work| app.afterwards { |plain| work.app = plain } }
      end

      # Runs the user's loop; returns when it ends.
      def run_service(index, service)
        @config.services.fetch(options.services.fetch(index)).call(service)
      end

      # Runs in a worker that was asked which of its pages are private, and why.
      # @param descriptors [Array<Integer>] owned by the recorder
      def record_pages(worker, wish, descriptors) = Pages::Recorder.start(worker, wish, descriptors)

      # Runs in a worker, now and then between two jobs.
      def code_bytes = Jit.code_bytes

      # Reports what has been found out about a thread to the monitor, see Generations::LostThreads.
      def report_thread(role, kind, text) = role.report(kind, text: text)

      # @raise [HookError]
      def run_hook(name, *arguments) = @config.hooks.run(name, @server, *arguments)
      def hook?(name) = @config.hooks.any?(name)

      private

      def own(config) = config
      def options_of(config) = ClusterOptions.of(config)

      def load_all
        load_application
        Jit.enable if @config.jit # after the application was loaded, because the code of its boot does not run again
        @care.loaded
        check_connections
        load_prefault if prefault_terms
        @reconnection = Reconnection.new if @config.refork_reconnect
      end

      def load_application
        require "pando/http"
        @app ||= HTTP::Rackup.load(@config.rackup)
        check_collections
        @self_test = find_self_test
      end

      def load_first_request
        require "pando/telemetry/first_request"
        @first_request = Telemetry::FirstRequest.new(@config.first_request_profile_folder)
      end

      # @return [Hash, false] how much a new worker is given
      def prefault_terms = @config.refork_prefault

      def load_prefault
        require "pando/refork/prefault"
        @prefault = Refork::Prefault.new(**prefault_terms)
      end

      # Emits an event only if the configuration asks for the deferral, and not the default.
      def check_collections
        return if @config.gc_major == :ruby || @config.default?(:gc_major)

        reason = Refork::MajorGC.obstacle or return
        Events.emit("gc.deferral_unavailable", setting: "gc major: #{@config.gc_major.inspect}", reason: reason)
      end

      def check_connections = tell_few(ForkSafety::Libraries::ActiveRecordPools.smaller_than(threads), threads)

      # @param databases [Hash{String => Integer}] their connections @param wanted [Integer] how many are enough
      def tell_few(databases, threads, wanted = threads)
        databases.each do |database, connections|
          Events.emit("connections.few", name: database, connections: connections, threads: threads,
                                         advice: "set max_connections (pool before Rails 8.1) to #{wanted} in " \
                                                 "config/database.yml")
        end
      end

      def tell_allocator(role)
        version = Sys.jemalloc or return
        Events.emit("allocator.loaded", generation: role.generation, pid: role.pid, name: "jemalloc", version: version)
      end

      # A request in the mold: the children share the caches that it fills.
      def warm_up_http(role)
        work(role.context.listeners, role.context.channel)
        HTTP::WarmUp.run(@config, role.context.listeners.first)
      end

      def handler(app, listeners, channel)
        return HTTP::DirectHandler.new(app, listeners, @config, self_test: @self_test) unless channel

        @channel ||= HTTP::Channel.attach(Sys.disown(channel.dup))
        kind = threads == 1 ? HTTP::ReactorHandler : HTTP::ThreadedHandler
        kind.new(app, listeners, @config, @channel, self_test: @self_test)
      end

      # By default Rails' health check, if the application has that route. In development there is none by default, so
      # that the routes are not loaded before they are needed.
      # @return [String, nil]
      def find_self_test
        request = @config.self_test
        request if request && (!@config.default?(:self_test) || (defined?(Railtie) && Railtie.health_check?))
      end

      # A worker that must not be forked serves on, but is not promoted.
      def tell_safety(worker)
        lambda do |reason|
          worker.fork_safe = reason.nil?
          identity = { slot: worker.slot, generation: worker.generation, pid: worker.pid }
          reason ? Events.emit("worker.unsafe", **identity, reason: reason) : Events.emit("worker.safe", **identity)
        end
      end

      def tell(role, failure)
        Events.emit("hook.failed", hook: "fork callback", slot: role.slot, generation: role.generation, pid: Pando.pid,
                                   reason: failure.message)
      end
    end

    # The same application in workers that serve some paths only, with settings of their own. A mold that is forked from
    # the first pool's shares its heap, which is prepared already: to compact it again would copy it.
    class PathPayload < Payload
      def initialize(server, pool)
        super(server)
        @pool = pool
        @config = pool.config
      end

      def load_beside(*)
        @prepared = true
        super
      end

      def prepare
        super unless @prepared
        @prepared = false # for a mold that is forked from one of its workers
      end

      def name = @pool.name
      def worker_name = name
      def reactor(_descriptors = nil) = nil

      private

      def own(config) = (@pool = Kinds.pool(config, name)).config

      # Its first mold is forked from that of the first pool, so that the application is in memory once.
      def options_of(config)
        super.tap do |options|
          options.auto_workers = false
          options.shared = true
          options.services = []
        end
      end
    end
  end
end
