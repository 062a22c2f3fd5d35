# frozen_string_literal: true

require "pando/compat/own_process"
require "pando/compat/solid_queue"
require "pando/events"

module Pando
  module Compat
    # Reports settings that were meant for another server and have no effect on Pando, once at each start, in the
    # monitor. It looks at the environment and at the text of config/puma.rb, which another process reads: see
    # OwnProcess.
    #
    # @api private
    class Notices
      PUMA = "config/puma.rb"
      INIT = "pando init writes config/pando.rb from it"
      # Lines that are reported one by one; the rest only as a number.
      MOST = 5
      private_constant :INIT, :MOST

      # @param config [Config]
      # @param env [Hash{String => String}]
      def initialize(config, env = ENV)
        @config = config
        @env = env
      end

      # Emits an event for each setting.
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
      def ignored = [*puma_file, solid_queue, threads].compact

      private

      def puma_file
        return if @config.config_file || !File.file?(path = File.join(@config.directory, PUMA))

        found = OwnProcess.call { unfollowed(path) }
        return [[PUMA, "Pando does not read it", INIT]] unless found

        lines = found.lines(chomp: true).map { |line| line.split("\t") }.reject(&:empty?)
        [*lines.first(MOST).map { |line| told(*line) }, *rest(lines.drop(MOST))]
      end

      # Returns one line per statement: its line number, its text, and what to do instead.
      def unfollowed(path)
        require "pando/compat/unread_file"
        source = File.read(path, encoding: Encoding::UTF_8)
        lines = UnreadFile.new(source, PUMA, @config, @env).lines
        "\n#{lines.map { |line| line.to_a.map { |one| one.to_s.tr("\t\n", "  ") }.join("\t") }.join("\n")}"
      end

      def told(number, text, remedy)
        ["#{PUMA}:#{number}", "Pando does not read #{text}", "#{remedy} #{INIT}"]
      end

      def rest(lines)
        return [] if lines.empty?

        [[PUMA, "Pando does not read lines #{lines.map(&:first).join(", ")} either", INIT]]
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
