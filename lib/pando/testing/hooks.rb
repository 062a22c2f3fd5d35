# frozen_string_literal: true

module Pando
  module Testing
    # The settings and hooks of the app's config file. The hooks run around a refork as in the server.
    class Hooks
      # Stands in for the server in hooks.
      Server = Struct.new(:config, :role)
      # Stands in for a mold or a worker in hooks.
      Role = Struct.new(:role, :slot, :generation, :pid, keyword_init: true)

      def self.load(path)
        return new(nil) unless path && File.file?(path)

        require "pando/config"
        new(Config.load(["-c", path]))
      end

      attr_reader :config

      def initialize(config)
        @config = config
        @server = Server.new(config, nil)
      end

      def before_fork = run(:before_fork)

      def after_fork(slot, generation)
        @server.role = Role.new(role: :mold, generation: generation, pid: Process.pid)
        run(:after_mold_fork, @server.role)
        @server.role = Role.new(role: :worker, slot: slot, generation: generation, pid: Process.pid)
        run(:after_worker_fork, @server.role)
      end

      private

      def run(name, *role) = @config&.hooks&.run(name, @server, *role)
    end
  end
end
