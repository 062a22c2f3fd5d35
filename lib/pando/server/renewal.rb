# frozen_string_literal: true

require "pando/cluster/inquiry"
require "pando/cluster/protocol"
require "pando/config"
require "pando/server/cluster_options"
require "pando/server/launch"
require "pando/server/probed_release"
require "pando/server/kinds"
require "pando/server/surroundings"

module Pando
  class Server
    # The configuration as it is now in the release folder, beside the one in use. Made by the monitor for
    # a reload, and either taken into use or given up. The file is run by another process first, for it may
    # hang; the monitor takes what that one has read, and runs the file itself only for blocks that are its own.
    #
    # @api private
    class Renewal
      # What the monitor and the reactor have made at their start, and keep.
      AT_START = %i[reactor pidfile].freeze
      OF_REACTOR = %i[max_target_bytes max_header_bytes max_headers max_body_bytes body_memory
                      answer_memory answer_memory_total spool spool_total buffer_memory header_timeout
                      body_timeout write_timeout idle_timeout queue_timeout max_queue max_connections
                      max_connections_per_address max_keepalive_requests retry_after retry_requests
                      stream_bodies health health_live].freeze
      # Seconds that the monitor may stand still while it runs the file itself.
      LONGEST_IN_MONITOR = 5.0

      # @return [Config] once it is #ready?
      attr_reader :config

      # @param server [Server]
      # @param old [Config] in use
      # @param first [Config] that the server was started with
      # @raise [SystemCallError] the release folder is gone
      def initialize(server, old, first, poller)
        @server = server
        @old = old
        @first = first
        @surroundings = Surroundings.new(old.directory)
        @inquiry = within { Cluster::Inquiry.new(poller, Launch.probe(old), environment, old.boot_timeout) }
      end

      # Called at each turn of the monitor's loop until it is true.
      # @raise [ConfigError] the new one is wrong
      # @raise [SystemCallError] the release folder is gone
      def ready?
        return true if @config
        return false unless @inquiry.proceed

        read
        true
      end

      # @return [Float, nil] when it must be looked at again
      def due = (@inquiry.deadline unless @inquiry.ending)

      # In the new release's folder.
      def within(&block) = @surroundings.within(&block)

      # @return [Cluster::ColdBootCommand] what becomes the new release's mold
      # @raise [BootError]
      def command = @command ||= Launch.mold(config, *(@folders if @folders.any?))

      def policy = policy_of(Kinds.names(config).first)

      # @param name [String] of a pool
      def policy_of(name) = Kinds.policy(config, name)
      def listen = @server.listen(config)

      # @return [Cluster::Control::Spec, nil] where it can be asked
      def control = ClusterOptions.of(config).control

      # @return [Array<Symbol, String>] settings that are not what the server was started with, and need a restart
      def kept
        settings = [*AT_START, *(OF_REACTOR if @first.reactor)].reject { |name| same?(name) }
        [*settings, *(Kinds.names(config) - Kinds.names(@first)).map { |name| "node #{name} (or pando upgrade)" }]
      end

      # It is the one in use from now on.
      def settle = @surroundings.enter

      # Nobody wants to know any more.
      def give_up = @inquiry.abandon

      private

      def same?(name)
        @first.public_send(name) == config.public_send(name)
      end

      def environment
        ENV.to_h.merge(ProbedRelease::ORDER => "#{Process.pid}:#{Cluster::PROTOCOL}")
      end

      def read
        @said = @inquiry.answer.lines.filter_map { |line| Cluster::Control::Record.decode(line) }
        @folders = all("folder").map { |said| said["path"] }
        check_protocol
        raise ConfigError, one("failed")["reason"].to_s if one("failed")
        raise ConfigError, untold unless one("done")

        @config = within { configuration }.tap { |config| check_kinds(config) }
      end

      # Which pools there are is decided at the start, whatever a reload has asked for since: the processes of one
      # cannot be left to themselves.
      def check_kinds(config)
        old, new = [@first, config].map { |one| Kinds.names(one) }
        return if (old - new).empty? && old.first == new.first

        raise ConfigError, "the new release has #{new.join(", ")} and not #{old.join(", ")}: that takes a restart"
      end

      def configuration
        return Config.replay(@old.argv, @said) unless one("whole")

        seconds = one("done")["seconds"].to_f
        return Config.load(@old.argv) if seconds < LONGEST_IN_MONITOR

        raise ConfigError, "the configuration takes #{seconds} s to read: the monitor, which must read it as well, " \
                           "would stand still (#{one("whole")["reason"]})"
      end

      def check_protocol
        pando = one("pando") or return
        return if pando["protocol"] == Cluster::PROTOCOL.to_s

        raise ConfigError, "the new release has Pando #{pando["version"]}, which does not understand this server's " \
                           "#{VERSION}: run pando upgrade first"
      end

      # Why its reader has said nothing of its end.
      def untold
        how = @inquiry.late? ? "it was not read within #{@old.boot_timeout} s" : "its reader ended: #{@inquiry.ending}"
        ["the new release has no configuration that can be read: #{how}", *complaint].join(": ")
      end

      # Such as Bundler's, of a gem that is missing: no colours, no places in the code of others.
      def complaint
        lines = @inquiry.complaint.gsub(/\e\[[\d;]*m/, "").lines.map(&:strip)
        text = lines.reject { |line| line.empty? || line.start_with?("from ") }.join(" ")
        text.empty? ? nil : text[0, 800]
      end

      def one(word) = all(word).last
      def all(word) = @said.filter_map { |said, pairs| pairs if said == word }
    end
  end
end
