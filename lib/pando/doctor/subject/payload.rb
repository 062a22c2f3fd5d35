# frozen_string_literal: true

require "pando/server/payload"
require "pando/doctor/subject/wire"

module Pando
  module Doctor
    # What runs inside the examined processes: the server's own payload, with eyes.
    module Subject
      # The server's payload as the doctor stages it: the same application, hooks and HTTP code,
      # but each worker listens on a socket of its own, so that the doctor knows who serves, and
      # each process says what it holds at the moments that matter.
      #
      # @api private
      class Payload < Server::Payload
        # Seconds that a process is given at least to become ready.
        START = 15.0
        # Seconds that the answer to a question may take.
        QUESTION = 400.0

        # @return [Wire]
        attr_reader :wire
        # @return [Use, nil] what this worker uses of what it inherited
        attr_reader :use

        # @param settings [Hash] patience: seconds, trace: Boolean
        def initialize(server, wire, settings)
          super(server)
          @wire = wire
          @settings = settings
        end

        def options
          @options ||= super.tap do |options|
            options.spawn_timeout = [START, @settings.fetch(:patience)].max
            options.oom_score_adj = nil
            options.longest_wait = QUESTION # an idle worker may be at one
            options.control = nil # the user's own server may be listening there
            options.memory = Cluster::Memory::Limits.new # tracing makes processes fat
            options.trainee = nil # nobody is before the others: the doctor asks each by itself
            options.canary = nil # the doctor's own requests are all that there are
            options.mold = :keep # it is looked at after them
          end
        end

        def reactor = nil

        # The doctor sees one application.
        def companions = []

        def load
          require "pando/doctor/subject/snapshot"
          require "pando/doctor/subject/use"
          require "pando/doctor/subject/work"
          require "pando/doctor/subject/eager_load"
          require "pando/doctor/subject/libraries"
          require "pando/doctor/features"
          require "pando/sys/code_region"
          require "pando/fork_safety"
          @before_load = open_descriptors
          remember_tasks
          Recorder.install(wire)
          Origins.trace
          trace_natives
          super
          EagerLoad.application&.then { |application| EagerLoad.perform(application) }
          Recorder.application_loaded
        end

        def work(_listeners, _channel) = @work = Work.new(@app, @config, self)

        def after_fork(*)
          Recorder.enter
          remember_tasks
          @told = nil
          super
        end

        def attach(role)
          super
          @role = role
          Pando.keep_io(*wire.ios)
          @use = Use.new(own_descriptors) if role.role == :worker
          @work&.close if role.role == :mold
        end

        # The doctor compares the processes by itself, and wants no trial.
        def report_thread(*) = nil

        # What the settings refuse is what the doctor is to show: it goes on and judges by itself.
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

        # A mold tells what its children inherit at its first fork.
        def run_hook(name, *arguments)
          super
          case name
          when :before_fork then tell_before_fork
          when :before_worker_exit then @work&.farewell
          end
        end

        # @param moment [Symbol] :fork, :fresh, :served
        # @return [nil]
        def tell(moment, everything: false)
          facts = everything ? snapshot.take_all : snapshot.take
          wire.tell({ snapshot: moment, role: @role.role, slot: @role.slot, generation: @role.generation,
                      kept: ForkSafety::Audit.kept_numbers(@config.keep_io),
                      routes: (routes if moment == :fork), code_region: code_region }.merge(facts))
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

        # @return [#call] whether the configuration allows a thread to be lost
        def allowed_threads
          allowed = allowed_by(@config.fork_safety_threads)
          ->(thread) { allowed.call(thread.origin) }
        end

        # @param policy [Symbol, Hash] see Config::Types::ListedPolicy
        # @return [#call]
        def allowed_by(policy)
          allowed = policy.is_a?(Hash) ? policy[:allow] : []
          everything = (policy.is_a?(Hash) ? policy[:otherwise] : policy) == :allow
          ->(one) { everything || allowed.any? { |pattern| one.match?(pattern) } }
        end

        def tell_before_fork
          Recorder.forking
          return if @told

          @told = true
          tell(:fork)
          return if @role.role == :worker

          wire.tell(features: Features.all, pid: Process.pid) if @role.generation.zero?
          Libraries.tell(wire, @config.prepared_library)
        end

        # The threads that are Ruby's own business: each process has a timer thread of its own.
        def remember_tasks = @tasks = Dir.children("/proc/self/task").map(&:to_i)

        # One of them was the listing's own.
        def open_descriptors
          Dir.children("/proc/self/fd").map(&:to_i).select { |number| File.exist?("/proc/self/fd/#{number}") }
        end

        def trace_natives
          return unless @settings[:trace]

          require "pando/doctor/subject/native_trace"
          NativeTrace.new(wire).start
        end

        def routes
          return unless @role.generation.zero? && defined?(::Rails.application.routes.routes)

          require "pando/doctor/subject/rails_routes"
          RailsRoutes.paths(::Rails.application)
        end
      end
    end
  end
end
