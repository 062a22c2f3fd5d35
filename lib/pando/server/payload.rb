# frozen_string_literal: true

require "pando/cluster/control/spec"
require "pando/cluster/memory_limits"

module Pando
  class Server
    # A Rack application as the cluster carries it. In the monitor it only
    # answers for options and hooks; the mold loads the application.
    #
    # @api private
    class Payload < Cluster::Payload
      def initialize(server)
        super()
        @server = server
        @config = server.config
      end

      def options = @options ||= read_options

      # @return [Renewal]
      def renew
        require "pando/server/renewal"
        Renewal.new(@config)
      end

      # @param renewal [Renewal]
      def adopt(renewal)
        @config = renewal.config
        @server.renew(@config)
        fresh = read_options
        options.members.each { |name| options[name] = fresh[name] unless name == :control }
      end

      def read_options
        Cluster::Options.new(
          workers: @config.workers, surge: @config.rollout_surge, unavailable: @config.rollout_unavailable,
          boot_timeout: @config.boot_timeout, spawn_timeout: @config.spawn_timeout,
          stop_timeout: @config.stop_timeout, grace: @config.timeout_grace,
          longest_request: @config.timeout && (@config.timeout + @config.timeout_grace),
          longest_wait: @config.header_timeout,
          oom_score_adj: @config.oom_score_adj || nil, control: control, memory: memory_limits,
          services: @config.services.keys
        )
      end
      private :read_options

      def load
        require "pando/fork_safety"
        require "pando/http"
        require "pando/http/rackup"
        ENV["RACK_ENV"] = @config.environment
        @app = HTTP::Rackup.load(@config.rackup)
      end

      def reactor
        return unless @config.reactor

        require "pando/http/reactor_setup"
        @reactor ||= HTTP::ReactorSetup.new(@config)
      end

      def work(listeners, channel)
        return HTTP::Work.new(@app, listeners.to_a, @config) unless channel

        @channel ||= HTTP::Channel.attach(channel.dup.tap { |copy| copy.autoclose = false }.fileno)
        HTTP::QueuedWork.new(@app, listeners.to_a, @config, @channel)
      end

      def run_hook(name, *arguments) = @config.hooks.run(name, @server, *arguments)
      def hook?(name) = @config.hooks.any?(name)
      def after_fork = ForkSafety.after_fork

      def attach(role)
        @server.role = role
        Pando.keep_io(*role.ios)
        ForkSafety.on_unsafe(&(give_up(role) if role.role == :worker))
      end

      def memory_limits
        Cluster::MemoryLimits.new(worker: @config.memory_worker, hard: @config.memory_hard, total: @config.memory_total,
                                  pressure: @config.memory_pressure)
      end
      private :memory_limits

      # The default is a convenience, and so it is done without where it does not fit.
      def control
        path = @config.control
        default = @config.source(:control) == "default"
        return unless path && (!default || File.directory?(File.dirname(path)))

        Cluster::Control::Spec.new(path: path, required: !default)
      end
      private :control

      # A worker that says it must not be forked serves on, but is never promoted.
      def give_up(worker)
        lambda do |reason|
          worker.no_longer_fork_safe!
          Events.emit("worker.unsafe", slot: worker.slot, generation: worker.generation, pid: worker.pid,
                                       reason: reason)
        end
      end
      private :give_up

      def run_service(index, service)
        @config.services.fetch(options.services.fetch(index)).call(service)
      end
    end
  end
end
