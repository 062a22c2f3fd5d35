# frozen_string_literal: true

require "forwardable"
require "pando/current_role"
require "pando/refork/preparation"
require "pando/server/app_environment"
require "pando/server/cluster_options"
require "pando/server/optional_features"
require "pando/server/jit"
require "pando/server/surroundings" # not when it is needed: there may be no descriptor left to read it

module Pando
  class Server
    # A Rack application as the cluster carries it. In the monitor it only
    # answers for options and hooks; the mold loads the application.
    #
    # @api private
    class Payload < Cluster::Payload
      extend Forwardable
      include OptionalFeatures

      def initialize(server)
        super()
        @server = server
        @config = @first = server.config
      end

      def name = Kinds::WEB

      # Those of the first pool.
      def companions = Kinds.companions(@server)

      def options = @options ||= options_of(@config)

      # @param listen [Array<String>]
      # @return [Hash{Symbol => String}] the environment, and the URL of the first address that a browser can open
      def introduction(listen)
        address = listen.find { |name| name.match?(/:\d+\z/) && !name.start_with?("unix:") }
        url = address && "http://#{address.sub(/\A(0\.0\.0\.0|\[::\]):/, "localhost:")}"
        { environment: @config.environment, url: url }.compact
      end

      def find_folder
        Surroundings.find(@config.directory)
      end

      # @return [Renewal]
      def renew(poller)
        require "pando/server/renewal"
        Renewal.new(@server, @config, @first, poller)
      end

      # @param renewal [Renewal]
      def adopt(renewal)
        renewal.settle
        @config = renewal.config
        @server.renew(@config)
        fresh = options_of(@config)
        options.members.each { |name| options[name] = fresh[name] }
      end

      def successor(&start)
        require "pando/server/successor"
        Successor.new(@config).launch(&start)
      end

      def load
        require "pando/server/fork_care"
        AppEnvironment.new(@config).apply
        Pando.serving = true
        $stdout.sync = true # what a process has said is not to die with it
        apply_page_settings
        @care = ForkCare.new(@server)
        @care.begin
        load_first_request if @config.first_request_profile
        @jit = Jit.new(@config.jit)
        load_application
        @jit.loaded
        @care.loaded
        load_extras
      end

      def become(name)
        Kinds.payload(@server, name).tap { |payload| payload.load_beside(@care) }
      end

      # The application is there already.
      # @param care [ForkCare] of the one that has loaded it
      def load_beside(care)
        @care = care
        @jit = Jit.new(@config.jit)
        load_application
        @care.loaded
        load_extras
      end

      def options_of(config) = ClusterOptions.of(config)
      private :options_of

      def load_application
        require "pando/http"
        require "pando/http/rackup"
        @app = HTTP::Rackup.load(@config.rackup)
        check_collections
      end
      private :load_application

      def reactor(descriptors = nil)
        return unless descriptors || @config.reactor

        require "pando/http/reactor_setup"
        @reactor ||= HTTP::ReactorSetup.new(@config, descriptors)
      end

      def work(listeners, channel)
        return (@work ||= http_work(@app, listeners, channel)).dup unless @first_request

        app = @first_request.wrap(@app, @server.role)
        http_work(app, listeners, channel).tap { |work| app.afterwards { |plain| work.app = plain } }
      end

      def http_work(app, listeners, channel)
        return HTTP::DirectHandler.new(app, listeners, @config, self_test: self_test) unless channel

        @channel ||= HTTP::Channel.attach(Sys.disown(channel.dup))
        HTTP::ReactorHandler.new(app, listeners, @config, @channel, self_test: self_test)
      end
      private :http_work

      # What each child would otherwise do for the first time, in memory of its own.
      def warm_up(role, &step)
        tell_allocator(role)
        @care.warm_up(&step)
        require "pando/pages/recorder" # loaded by a worker it would be of its private memory that it is asked for
        rehearse(role)
      end

      # A request in the mold, whose traces the children share.
      def rehearse(role)
        work(role.context.listeners, role.context.channel)
        HTTP::Rehearsal.run(@config, role.context.listeners.first)
      end
      private :rehearse

      def tell_allocator(role)
        version = Sys.jemalloc or return
        Events.emit("allocator.loaded", generation: role.generation, pid: role.pid, name: "jemalloc", version: version)
      end
      private :tell_allocator

      def prepare = Refork::Preparation.run(@config.gc_mold)

      def hand_down(of)
        return unless of == :mold

        @care.hand_down
        @reconnection&.note
      end

      def take_up = @reconnection&.run

      def_delegators :@care, :say_goodbye, :before_exit, :before_fork, :around_fork, :verify, :audit, :tick,
                     :finish_queues, :watch, :lost_thread, :state_seen

      def observe(mold, pagemap)
        @prefault&.observe(mold, pagemap)
        nil
      end

      # First what makes all else faster.
      def after_fork(role, &step)
        @prefault&.populate(role) if role.role == :worker
        @care.after_fork(role, &step)
      end

      def record_pages(worker, wish, descriptors) = Pages::Recorder.start(worker, wish, descriptors)

      def code_bytes = Jit.code_bytes
      def train(worker) = @jit.train(worker)
      def examination_command = Launch.examination

      def run_hook(name, *arguments) = @config.hooks.run(name, @server, *arguments)
      def hook?(name) = @config.hooks.any?(name)

      def attach(role)
        Pando.current_role = @server.role = role
        Pando.keep_io(*role.ios)
        @jit.promoted if role.role == :mold
        ForkSafety.on_unsafe(&(tell_safety(role) if role.role == :worker))
        ForkSafety.on_callback_failure { |failure| tell(role, failure) }
      end

      # A worker that must not be forked serves on, but is not promoted.
      def tell_safety(worker)
        lambda do |reason|
          worker.fork_safe = reason.nil?
          identity = { slot: worker.slot, generation: worker.generation, pid: worker.pid }
          reason ? Events.emit("worker.unsafe", **identity, reason: reason) : Events.emit("worker.safe", **identity)
        end
      end
      private :tell_safety

      def tell(role, failure)
        Events.emit("hook.failed", hook: "fork callback", slot: role.slot, generation: role.generation, pid: Pando.pid,
                                   reason: failure.message)
      end
      private :tell

      def run_service(index, service)
        @config.services.fetch(options.services.fetch(index)).call(service)
      end
    end
  end
end
