# frozen_string_literal: true

require "pando/cluster"
require "pando/compat/notices"
require "pando/config"
require "pando/server/app_environment"
require "pando/server/start_mode"
require "pando/server/kinds"
require "pando/server/launch"
require "pando/telemetry/log"

module Pando
  # Puts the parts together: the configuration, the cluster, and what its
  # workers serve. One instance lives in the monitor, another in each mold and
  # all that is forked from it; hooks get it as their first argument.
  class Server
    # @return [Config]
    attr_reader :config
    # @return [Cluster::Mold, Cluster::Worker, Cluster::Service, nil] what this process is; nil in the monitor
    attr_accessor :role

    # @param config [Config]
    def initialize(config)
      @config = config
      @inherited = Cluster::Listening::Inherited.none
    end

    # Runs the monitor until the server stops. In the process that `pando` was started as.
    #
    # @return [Integer] exit status: 0 after a wanted stop, 1 when nothing could be served
    # @raise [BootError] an address cannot be listened on
    def run = prepare.run

    # @api private
    # @return [Cluster::Monitor] that is about to serve
    # @raise [BootError] an address cannot be listened on
    def prepare
      require "pando/server/payload"
      StartMode.enter { |start| monitor(start) }
    end

    # Where nothing is said about it, what a service manager has opened for us comes before the default.
    #
    # @api private
    # @return [Array<Config::Listen>]
    def listen(config)
      return [] if config.workers.zero?
      return config.listen unless @inherited.any? && config.default?(:listen)

      [Config::Listen.parse(Config::Address::SYSTEMD)]
    end

    # What every process of the server that has this configuration does first.
    #
    # @api private
    def subscribe
      Telemetry::Log.attach($stderr, format: config.log_format, level: config.log_level)
      listen_to_events
    end

    # After a reload, in the monitor.
    #
    # @api private
    # @param config [Config]
    def renew(config)
      return if config.equal?(@config) # another pool's payload has said so

      @config = config
      @subscriptions.each { |subscription| Events.unsubscribe(subscription) }
      listen_to_events
    end

    # What the cluster carries.
    #
    # @api private
    # @param pool [String] the name of the kind of worker
    # @return [Payload]
    # @raise [BootError] there is no such kind
    def payload(pool = Kinds.names(config).first) = Kinds.payload(self, pool)

    private

    def monitor(start)
      subscribe unless start.rehearsal?
      Compat::Notices.new(config).tell if start.fresh?
      warn_of_variables unless start.rehearsal?
      @inherited = start.inherited_sockets
      Cluster::Monitor.new(payload, listen(config), policy, Launch.mold(config), start)
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
