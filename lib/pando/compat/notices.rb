# frozen_string_literal: true

require "pando/compat/solid_queue"
require "pando/events"

module Pando
  module Compat
    # What was said to another server and does not reach Pando: told once at each start, in the monitor. It looks at
    # nothing but the environment and the text of config/puma.rb.
    #
    # @api private
    class Notices
      PUMA = "config/puma.rb"
      PLUGIN = /^[ \t]*plugin[ (]+[:"'](\w+)(.*)$/
      # Followed without a line in a config file.
      FOLLOWED = %w[tmp_restart].freeze
      private_constant :PLUGIN, :FOLLOWED

      # @param config [Config]
      # @param env [Hash{String => String}]
      def initialize(config, env = ENV)
        @config = config
        @env = env
      end

      # Emits an event for each.
      #
      # @return [void]
      def tell
        ignored.each do |name, reason, advice|
          Events.emit("setting.ignored", name: name, reason: reason, advice: advice)
        end
        return unless (node = @config.nodes.find { |kind| kind.source == SolidQueue::VARIABLE })

        Events.emit("setting.followed", name: SolidQueue::VARIABLE,
                                        reason: "node #{node.name} runs config/queue.yml and config/recurring.yml")
      end

      # @return [Array<Array(String, String, String)>] name, reason and advice
      def ignored = [puma_file, solid_queue, threads].compact

      private

      def puma_file
        return if @config.config_file || !File.file?(path = File.join(@config.directory, PUMA))

        plugins = lost_plugins(File.read(path, encoding: Encoding::BINARY))
        reason = "Pando does not read it"
        reason += ", nor does it run its plugins #{plugins.join(", ")}" if plugins.any?
        [PUMA, reason, "pando init writes config/pando.rb from it"]
      rescue SystemCallError
        nil
      end

      # The plugin of Solid Queue that waits for the variable is told about with that.
      def lost_plugins(text)
        found = text.scan(PLUGIN).reject { |name, rest| FOLLOWED.include?(name) || rest.include?(SolidQueue::VARIABLE) }
        found.map(&:first).uniq - (SolidQueue.wanted?(@env) ? ["solid_queue"] : [])
      end

      def solid_queue
        return unless SolidQueue.wanted?(@env) && @config.workers.positive? && jobs.none?

        [SolidQueue::VARIABLE, "no jobs run: #{SolidQueue.obstacle(@config.directory, @env)}",
         "run bundle install, or unset it"]
      end

      def jobs = @config.nodes.select { |kind| kind.runner == :solid_queue }

      def threads
        name = %w[RAILS_MAX_THREADS MAX_THREADS].find { |one| @env.fetch(one, "").to_i > 1 } or return
        return if @config.workers.zero?

        [name, "a worker serves one request at a time",
         "WEB_CONCURRENCY or workers says how many requests are served at once"]
      end
    end
  end
end
