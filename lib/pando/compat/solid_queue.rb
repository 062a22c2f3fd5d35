# frozen_string_literal: true

require "pando/compat/lock_file"

module Pando
  module Compat
    # SOLID_QUEUE_IN_PUMA, by which a Rails application asks its web server to run its jobs. Pando runs them in a node
    # next to the workers.
    module SolidQueue
      VARIABLE = "SOLID_QUEUE_IN_PUMA"
      OFF = ["", "false", "0", "no", "off"].freeze
      # The condition of .wanted? as Ruby text for config/pando.rb.
      QUESTION = "![#{OFF.map(&:dump).join(", ")}].include?(ENV.fetch(\"#{VARIABLE}\", \"\").downcase)".freeze
      # A condition of a Puma config file that holds if the variable is set: the first is the one that Rails writes.
      SET = /ENV(?:\[|\.fetch\()["']#{VARIABLE}["'](?:\]|(?:, *(?:nil|false))?\))/
      EQUAL = /ENV(?:\[|\.fetch\()["']#{VARIABLE}["'](?:\]|, *(?:nil|["']?(?:false|0)?["']?)\)) *== *["'](?:true|1)["']/
      # A condition that does not hold without the variable.
      ASKED = /#{SET}|#{EQUAL}/
      ENVIRONMENT = "config/environment.rb"
      # The keywords of the `node` line.
      NODE = { queue_file: true, shared: true, require: "./#{ENVIRONMENT}" }.freeze
      # That line.
      LINE = "node :solid_queue, #{NODE.map { |name, value| "#{name}: #{value.inspect}" }.join(", ")}".freeze
      # A line of a config file that has it, and one that has Puma's plugin.
      IN_FILE = /^[^#\n]*\bnode[ (]+:solid_queue\b/
      PLUGIN = /^[^#\n]*\bplugin[ (]+["':]solid_queue\b/
      private_constant :OFF, :EQUAL

      class << self
        def wanted?(env) = !OFF.include?(env.fetch(VARIABLE, "").downcase)

        def possible?(directory, env) = obstacle(directory, env).nil?

        # @return [String, nil] why there is no node
        def obstacle(directory, env)
          return "there is no #{ENVIRONMENT}" unless File.file?(File.join(directory, ENVIRONMENT))

          "the Gemfile.lock does not name solid_queue" unless LockFile.names?(directory, "solid_queue", env: env)
        end
      end
    end
  end
end
