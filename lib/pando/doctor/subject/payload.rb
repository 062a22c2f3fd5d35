# frozen_string_literal: true

require "json"
require "pando/server"
require "pando/server/payload"
require "pando/doctor/subject/wire"

module Pando
  module Doctor
    module Subject
      # The server's payload with the doctor's instruments: the same application, hooks and HTTP code, but each worker
      # listens on a socket of its own, so that the doctor knows which one serves, and each process reports a snapshot
      # before a fork and after it has served. Lives in the stage's monitor, molds and workers.
      class Payload < Server::Payload
        # The environment variable with the doctor's settings, as JSON.
        VARIABLE = "PANDO_DOCTOR"
        # Seconds: the shortest `spawn_timeout`.
        START = 15.0
        # Seconds that the answer to the longest question may take, without the patience: four children of 120 seconds,
        # one after another, measure lazy state (see LazyStateMeasurement).
        MEASUREMENT = 480.0

        # Called by the stage's monitor and by a cold mold.
        def self.build(argv)
          settings = JSON.parse(ENV.fetch(VARIABLE), symbolize_names: true)
          wire = Wire.new(settings.fetch(:folder))
          config = load_config(argv, wire, settings.fetch(:workers))
          Events.subscribe { |event| wire.tell(event: event.name, **event.payload) }
          # The application's own subscriptions may hold something that a fork breaks.
          config.subscriptions.each { |one| Events.subscribe(one.name, &one.block) }
          new(Server.new(config), wire, settings)
        end

        # The file was valid when the doctor read it, but may have been edited since. The settings are set after it was
        # read: the flag `--reactor false` would be refused beside settings that need a reactor.
        def self.load_config(argv, wire, workers)
          listen = [Config::Listen.parse("unix:#{File.join(wire.folder, "listener")}")]
          Config.load(argv).with(reactor: false, threads: 1, workers: workers, refork: :manual, listen: listen)
        rescue ConfigError => e
          wire.tell(refused: e.message)
          raise
        end
        private_class_method :load_config

        attr_reader :config, :wire
        # @return [ForkSafety::Use, nil] of a worker: which inherited descriptors it uses
        attr_reader :use

        # @param settings [Hash] patience: seconds, trace: Boolean, workers: their number, threads: whether a worker of
        #   the real server has several requests at once
        def initialize(server, wire, settings)
          super(server)
          @wire = wire
          @settings = settings
        end

        def options
          @options ||= super.tap do |options|
            options.spawn_timeout = [START, @settings.fetch(:patience)].max
            options.auto_workers = false
            options.oom_score_adj = nil
            options.longest_wait = MEASUREMENT + @settings.fetch(:patience) # an idle worker may be answering one
            options.health = nil # there is no reactor to answer the checks
            options.control = options.admin = options.pidfile = nil # the user's own server may have them
            options.memory = Cluster::Memory::Limits.new # tracing needs memory
            options.canary = nil # there are no requests but the doctor's
            options.mold = :keep # the doctor examines it after its workers
          end
        end

        def threads? = @settings.fetch(:threads, false)

        def reactor = nil

        # The doctor examines one application.
        def companions = []

        def load
          require "pando/doctor/subject/snapshot"
          require "pando/doctor/subject/handler"
          require "pando/doctor/subject/rails_app"
          require "pando/fork_safety/libraries"
          require "pando/sys/mapping"
          require "pando/fork_safety"
          require "pando/fork_safety/use"
          @before_load = Sys.descriptor_targets.keys
          remember_tasks
          Instruments.install(wire)
          Snapshot.trace_origins
          NativeTrace.new(wire).start if @settings[:trace]
          super
          RailsApp.eager_load
          Instruments.application_loaded
        end

        def work(_listeners, _channel) = @work = Handler.new(@app, @config, self)

        def after_fork(*)
          Instruments.enter
          remember_tasks
          @reported = nil
          super
        end

        def attach(role)
          super
          @role = role
          Pando.keep_io(*wire.ios)
          @use = ForkSafety::Use.new(own_descriptors) if role.role == :worker
          @work&.close if role.role == :mold
        end

        # Never compacts the heap: Ruby would forget the lines that made the objects which it moves.
        def prepare = Refork::Preparation.run(@config.gc_mold && :promote)

        # The doctor compares the processes itself.
        def report_thread(*) = nil

        # The doctor has to show what the settings refuse, so it forks all the same.
        def before_fork(*)
          super
        rescue Server::ForkAudit::Refused, ForkDeclined
          nil
        end

        # (see #before_fork)
        def audit(*)
          super
        rescue Server::ForkAudit::Refused, Server::ThreadWatch::Refused
          nil
        end

        # At its first fork a mold reports what its children inherit.
        def run_hook(name, *arguments)
          super
          case name
          when :before_fork then tell_before_fork
          when :before_worker_exit then Instruments.phase = :leaving # from now on objects end
          end
        end

        def tell(moment, everything: false)
          wire.tell({ snapshot: moment, role: @role.role, slot: @role.slot, generation: @role.generation,
                      kept: ForkSafety::Audit.kept_numbers(@config.keep_io),
                      routes: (routes if moment == :fork), code_region: code_region }.merge(snapshot.take(everything)))
        end

        # @return [Array<Integer>, nil] bytes: used, and that may be used at most
        def code_region = code_bytes.positive? ? Sys::CodeRegion.of(Process.pid, code_bytes)&.to_a : nil

        def snapshot = Snapshot.new(own_descriptors, @tasks, allowed_threads)

        def own_descriptors
          own = [*@role.ios, *wire.ios, *@work&.ios].reject(&:closed?).map(&:fileno)
          own | @before_load
        end

        # @return [#call] whether the configuration allows a request to make a change
        def allowed_changes = allowed_by(@config.fork_safety_state)

        private

        def allowed_threads
          allowed = allowed_by(@config.fork_safety_threads)
          ->(thread) { allowed.call(thread.origin) }
        end

        # @param policy [Symbol, Hash] see Config::Types::ListedPolicy
        def allowed_by(policy)
          allowed = policy.is_a?(Hash) ? policy[:allow] : []
          everything = (policy.is_a?(Hash) ? policy[:otherwise] : policy) == :allow
          ->(one) { everything || allowed.any? { |pattern| one.match?(pattern) } }
        end

        def tell_before_fork
          Instruments.forking
          return if @reported

          @reported = true
          tell(:fork)
          return if @role.role == :worker

          wire.tell(features: Features.all, pid: Process.pid) if @role.generation.zero?
          tell_libraries
        end

        # The audit is not asked: it judges what is open when a fork is made, while the doctor sees what is still shared
        # once the children have served.
        def tell_libraries
          known = ForkSafety::Libraries
          wire.tell(section: :libraries, pid: Process.pid, entries: known.loaded.map(&:to_h),
                    findings: known.findings(prepared: @config.prepared_library).map(&:to_h))
        rescue StandardError => error
          wire.tell(section: :libraries, pid: Process.pid, findings: [], error: "#{error.message} (#{error.class})")
        end

        # Ruby's own threads, such as the timer thread of each process.
        def remember_tasks = @tasks = Dir.children("/proc/self/task").map(&:to_i)

        def routes
          RailsApp.routes(::Rails.application) if @role.generation.zero? && defined?(::Rails.application.routes.routes)
        end
      end
    end
  end
end
