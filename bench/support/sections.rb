# frozen_string_literal: true

require "fileutils"
require "json"
require "support/native"
require "support/open_load"
require "support/packages"
require "support/server"

module Bench
  # A program of several sections: runs them one after the other, prints, checks. A section is made with the options,
  # has `call`, `to_s`, `to_h` with all its figures, and `targets`: what must hold, in words, and whether it does.
  class Sections
    FAILURES = [Packages::Missing, Server::Failed, Native::Failed, OpenLoad::Failed].freeze

    # Runs the program, and ends this process.
    #
    # @param name [String] of the program
    # @param options [#sections, #json, #check?]
    # @param known [Hash{String => Class}] the sections
    # @param failures [Array<Class>] further errors that are told without a backtrace
    # @return never
    def self.run(name, options, known, failures = [])
      $stdout.sync = true
      exit new(options, known).call
    rescue *FAILURES, *failures => e
      abort "#{name}: #{e.message}"
    rescue SignalException => e
      abort "#{name}: stopped by #{e.message.empty? ? "SIGINT" : e.message}"
    end

    def initialize(options, known)
      @options = options
      @known = known
    end

    # @return [Boolean] false when a check was asked for and failed
    def call
      puts "Ruby #{RUBY_VERSION}, #{@options.rounds} rounds"
      sections = @options.sections.map do |name|
        @known.fetch(name).new(@options).call.tap { |section| puts "", section, verdicts(section) }
      end
      write(@options.json, @options.sections.zip(sections.map(&:to_h)).to_h) if @options.json
      !@options.check? || sections.all? { |section| section.targets.values.all? }
    end

    private

    def verdicts(section) = section.targets.map { |words, kept| "#{kept ? "kept" : "missed"}: #{words}" }

    def write(path, figures)
      FileUtils.mkdir_p(File.dirname(path))
      File.write(path, JSON.pretty_generate(figures))
      warn "wrote #{path}"
    end
  end
end
