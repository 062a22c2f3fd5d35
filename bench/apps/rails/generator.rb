# frozen_string_literal: true

require "erb"
require "fileutils"
require_relative "blueprint"

module Bench
  # A Rails 8 app of realistic size: 44 models, two controllers, a presenter, a serializer and six views for each.
  module RailsApp
    # Writes the app into a folder. Templates are in templates/: those in `each/` are filled in once for each model,
    # with its names in the place of NAME and PLURAL in the path, all others once.
    class Generator
      TEMPLATES = File.join(__dir__, "templates")
      ROWS = 60 # of each table

      # All that the app is made of: a generated one is used again as long as this stays the same.
      def self.sources = (Dir[File.join(__dir__, "*.rb")] + Dir[File.join(TEMPLATES, "**/*.tt")]).sort

      # @param folder [String] need not exist
      def initialize(folder)
        @folder = folder
        @models = Blueprint.all
      end

      # @return [void]
      def write
        templates.each do |template|
          if template.start_with?("each/")
            @models.each { |model| fill(template, model.scope, path_for(template, model)) }
          else
            fill(template, binding, template)
          end
        end
      end

      private

      attr_reader :models

      def rows = ROWS
      def templates = Dir[File.join(TEMPLATES, "**/*.tt")].map { |path| path.delete_prefix("#{TEMPLATES}/") }

      def path_for(template, model)
        template.delete_prefix("each/").gsub("NAME", model.name).gsub("PLURAL", model.plural)
      end

      def fill(template, scope, path)
        source = File.join(TEMPLATES, template)
        target = File.join(@folder, path.delete_suffix(".tt"))
        FileUtils.mkdir_p(File.dirname(target))
        erb = ERB.new(File.read(source), trim_mode: "-")
        erb.filename = source
        File.write(target, erb.result(scope))
      end
    end
  end
end
