# frozen_string_literal: true

require "json"
require "pando/config"
require "pando/measure/subject"
require "pando/server/reexec_without_gems"
require "pando/server/cluster_options"
require "pando/version"

module Pando
  module Measure
    # Pando with the user's config file, except for addresses and files. Job nodes and services are left out: their work
    # is not compared, and the user's regular server does it already.
    #
    # @api private
    class PandoSubject < Subject
      OURS = %i[listen control admin pidfile workers environment log_format log_level config_file].freeze
      # A minute of the load stands for many of production, see Server::TimeScale.
      TIME_SCALE = "10"
      WITHOUT_NODES = <<~RUBY
        def node(*, **) = nil
        def service(*) = nil
        def admin(*, **) = nil
        eval(File.read(%<path>s), binding, %<path>s, 1)
      RUBY
      private_constant :OURS, :TIME_SCALE, :WITHOUT_NODES

      def name = "Pando"

      def facts
        { version: VERSION, config: @config.config_file&.delete_prefix("#{@config.directory}/"), workers: @workers,
          threads: [1, 1], preloaded: true, allocator: tree.allocator, refork: refork, scale: scale,
          left_out: left_out, reforks: events("refork.finished"), discarded: events("generation.discarded") }
      end

      # @return [String] the errors in its log, each once
      def last_words = Advice.last_words(output.each_line.filter_map { |line| plain(line) }.uniq.join)

      private

      # @param line [String] of the application's output, or of the log, which is in JSON
      # @return [String, nil] the line for a human; nil: it is not needed
      def plain(line)
        return line unless line.start_with?("{") && (event = JSON.parse(line)).key?("event")
        return if event["level"] == "info"

        error = event["error"]
        error.is_a?(Hash) ? "#{event["event"]}: #{brief(error)}\n" : line
      rescue JSON::ParserError
        line
      end

      def brief(error)
        place = Array(error["backtrace"]).first
        "#{error["class"]}: #{error["message"]}#{" (#{place})" if place}"
      end

      def worker = /\Apando worker\b/

      def command
        flags = Config::Flags.parse(@config.argv)
        given = flags.given.reject { |one| OURS.include?(one.setting.name) }
        positional, flagged = given.partition { |one| one.flag.nil? }
        [*ruby, *Server::Launch.load_path, Server::ReexecWithoutGems::PROGRAM, "serve", *flagged.flat_map(&:argv),
         *own_flags, *positional.flat_map(&:argv)]
      end

      def own_flags
        ["-e", @config.environment, "-w", @workers.to_s, "-l", "127.0.0.1:#{port}",
         "--control", path("control"), "--pidfile", path("pid"), "--log-format", "json", "--log-level", "info",
         *(["-c", config_file] if @config.config_file)]
      end

      def environment = super.merge(Server::TimeScale::VARIABLE => scale)
      def scale = ENV.fetch(Server::TimeScale::VARIABLE, TIME_SCALE)

      def config_file
        return @config.config_file if left_out.empty?

        path("pando.rb").tap { |file| File.write(file, format(WITHOUT_NODES, path: @config.config_file.dump)) }
      end

      def left_out
        [*@config.node_lines.map { |line| "node #{line.name.inspect}" },
         *@config.services.keys.map { |name| "service #{name.inspect}" }]
      end

      def refork = @config.entries(:refork).last.then { |entry| Config::Settings[:refork].write(entry.value) }

      # The log has a line for each event, with the application's lines in between.
      def events(name)
        Advice.read(error_path).each_line.count do |line|
          line.start_with?("{") && line.include?("\"#{name}\"") && JSON.parse(line)["event"] == name
        rescue JSON::ParserError
          false
        end
      end
    end
  end
end
