# frozen_string_literal: true

module Bench
  module RailsApp
    # What one model of the generated app is made of. All of it follows from its place in the list, so that the app is
    # the same wherever it is generated.
    class Blueprint
      NAMES = %w[account team member role customer contact supplier brand collection product variant price discount
                 coupon cart order shipment parcel carrier warehouse bin transfer invoice payment refund ledger store
                 region terminal ticket comment review rating question answer article author banner campaign segment
                 subscription plan report webhook].freeze

      COMMON = { "title" => "string", "code" => "string", "status" => "integer", "position" => "integer" }.freeze
      POOL = { "description" => "text", "priority" => "integer", "quantity" => "integer", "amount_cents" => "integer",
               "weight" => "float", "rate" => "float", "active" => "boolean", "starts_on" => "date",
               "ends_on" => "date", "notes" => "text", "email" => "string", "city" => "string", "country" => "string",
               "color" => "string", "locale" => "string", "score" => "float", "visits" => "integer",
               "reference" => "string" }.freeze
      OWN = 7 # attributes out of the pool
      STATUSES = %w[draft open waiting approved closed archived].freeze
      CONCERNS = %w[Labelled Counted Dated Priced Searchable Scored].freeze

      attr_reader :index, :name

      # @return [Array<Blueprint>]
      def self.all = NAMES.each_index.map { |index| new(index) }

      def initialize(index)
        @index = index
        @name = NAMES.fetch(index)
      end

      def plural = "#{name}s"
      def constant = name.capitalize
      def constants = plural.capitalize

      def attributes
        COMMON.merge(POOL.to_a.rotate(index * OWN).first(OWN).to_h)
      end

      def of_type(*types) = attributes.select { |_name, type| types.include?(type) }.keys
      def numbers = of_type("integer", "float") - %w[status]
      def words = of_type("string", "text")
      def concerns = CONCERNS.rotate(index * 2).first(3)

      # Up to three models that came before this one.
      def parents
        [index - 1, index / 2, index / 3].select { |other| other >= 0 && other < index }.uniq.map { |at| at_index(at) }
      end

      def children
        ((index + 1)...NAMES.size).map { |at| at_index(at) }.select { |other| other.parents.include?(self) }
      end

      def ==(other) = other.is_a?(Blueprint) && index == other.index

      # For the templates.
      def scope = binding

      private

      def at_index(index) = Blueprint.new(index)
    end
  end
end
