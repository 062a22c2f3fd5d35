# frozen_string_literal: true

require "rbconfig"

module Pando
  module ForkSafety
    module Audit
      # Where a thread comes from: the line of its block, and the gem that this line belongs to. Threads of one origin
      # count as one. This class writes the messages about a lost thread, so that the log, `pando status` and the doctor
      # say the same. A value.
      class ThreadOrigin
        # The most bytes of a location in a key; the end of a path says more than its beginning.
        LONGEST = 300
        # The most characters of a path in a message.
        SHORT = 120
        APPLICATION = "the application"
        RUBY = "Ruby's standard library"
        STANDARD = RbConfig::CONFIG.values_at("rubylibdir", "sitelibdir", "vendorlibdir").compact
                                   .map { |path| "#{path}/" }.freeze
        private_constant :LONGEST, :SHORT, :APPLICATION, :RUBY, :STANDARD

        # @param location [String, nil] "file:line"; nil for a thread of C code
        # @param name [String, nil] of the thread
        # @return [String] the same for all threads of one origin, in every process
        def self.key(location, name = nil)
          text = location || "C code (#{name || "no name"})"
          (text.byteslice(-LONGEST, LONGEST)&.scrub("") || text).tr("\n", "?")
        end

        # @return [String] see {key}
        attr_reader :key
        # @return [String, nil] the gem's name; nil: the thread belongs to the app or to Ruby
        attr_reader :gem_name
        # @return [String, nil] as the app named the thread
        attr_reader :name

        # @param location [String, nil] "file:line"
        # @param name [String, nil] of the thread
        # @param directory [String] the app's
        def initialize(location, name = nil, directory: Dir.pwd)
          @key = self.class.key(location, name)
          @location = location
          @name = name
          @directory = directory
          @specification = specification
          @gem_name = @specification&.name
        end

        # @return [String] the gem and its version, or the application, or Ruby
        def owner
          return [@specification.name, @specification.version].join(" ") if @specification

          standard? ? RUBY : APPLICATION
        end

        # @return [String] "file:line", relative to the directory of its owner
        def place
          return @key unless @location

          folder = @specification&.full_gem_path || @directory
          short = @location.delete_prefix("#{folder}/").tr("\n", "?")
          short.size > SHORT ? "...#{short[-SHORT..]}" : short
        end

        # @return [String] what was found and why it matters, without a full stop
        def message
          called = " (#{name.inspect})" if name
          "No forked process has the thread#{called} of #{owner} that #{place} starts: " \
            "its work silently stops there"
        end

        # @param row [String, nil] the advice of the library table
        # @return [String] what to do
        def advice(row = nil)
          "#{row || "Stop the thread in before_fork and start it again in after_worker_fork, or register it with " \
                    "Pando::ForkSafety.thread (docs/fork-hooks.md)."} " \
            "To accept the loss, set fork_safety threads: { allow: [#{(gem_name || place).inspect}] }."
        end

        # @param pattern [String] a gem's name, or a path or the end of one, with or without the line
        # @return [Boolean]
        def match?(pattern)
          gem_name == pattern || "/#{@location}".match?(%r{/#{Regexp.escape(pattern.delete_prefix("/"))}(?=[/:]|\z)})
        end

        private

        # The innermost directory counts: a gem may lie inside another one.
        def specification
          return unless @location

          owners = Gem.loaded_specs.each_value.select { |one| @location.start_with?("#{one.full_gem_path}/") }
          owners.max_by { |one| one.full_gem_path.size }
        end

        def standard? = !@location.nil? && @location.start_with?(*STANDARD)
      end
    end
  end
end
