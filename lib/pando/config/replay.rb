# frozen_string_literal: true

require "pando/config/loader"

module Pando
  class Config
    # A config file that another process has run. Replay repeats its statements here. The blocks stay in the other
    # process; of services only the names are known.
    #
    # @api private
    class Replay < Loader
      # @param statements [Array<Array(String, Hash{String => String})>] see Server::Transcript
      def initialize(flags, env, dir, statements)
        super(flags, env, dir)
        @statements = statements
      end

      private

      def run_file
        @statements.each do |word, said|
          case word
          when "set" then repeat(said)
          when "pool" then repeat_pool(said)
          when "node" then repeat_node(said)
          when "service" then recorder.blocks << Recorder::Block.new(:service, said.fetch("name"), nil, said["source"])
          end
        end
      end

      def repeat_pool(said)
        require "pando/config/pool_line"
        recorder.add_pool(PoolLine.from(said))
      end

      def repeat_node(said)
        require "pando/config/node_line"
        recorder.add_node(NodeLine.from(said))
      end

      # A setting that this version does not know concerns only the mold.
      def repeat(said)
        setting = Settings.all.find { |one| one.name.name == said["name"] } or return
        options = setting.options.keys.to_h { |name| [name, said["option_#{name}"]] }.compact
        @values.set_by_file(setting, Values.cast(setting, said["value"], said["source"], options), said["source"])
      end
    end
  end
end
