# frozen_string_literal: true

# The products beside Solidus's samples: each has a price, properties, images of the samples, and every other one
# variants.
class Catalogue
  PRODUCTS = 120
  WORDS = %w[amber birch cedar delta ember fjord grove heath inlet jetty knoll ledge maple north ocean pine].freeze
  PROPERTIES = %w[material fit origin care].freeze
  IN_STOCK = 100_000

  def initialize(random)
    @random = random
    @taxons = Spree::Taxon.where.not(parent_id: nil).order(:id).to_a
    @options = Spree::OptionType.order(:id).map { |type| [type, type.option_values.order(:id).to_a] }
    @blobs = ActiveStorage::Blob.order(:id).to_a
  end

  def fill
    (1..PRODUCTS).each { |number| make(number) }
    Spree::StockItem.update_all(count_on_hand: IN_STOCK)
  end

  private

  def words(count) = WORDS.sample(count, random: @random)

  def make(number)
    product = Spree::Product.create!(
      name: [*words(2), number].join(" ").capitalize, slug: "item-#{number}", description: words(12).join(" "),
      price: @random.rand(500..20_000) / 100.0, available_on: Time.utc(2026, 1, 1), sku: "LAB-#{number}",
      shipping_category: Spree::ShippingCategory.first, tax_category: Spree::TaxCategory.first,
      taxons: @taxons.sample(2, random: @random)
    )
    PROPERTIES.each { |name| product.set_property(name, words(1).first) }
    show(product.master)
    vary(product) if number.even?
  end

  def show(variant)
    @blobs.sample(2, random: @random).each { |blob| variant.images.create!(attachment: blob) }
  end

  def vary(product)
    product.option_types = @options.map(&:first)
    combinations = @options.map(&:last).reduce { |one, other| one.product(other) }
    combinations.sample(4, random: @random).each_with_index do |values, index|
      product.variants.create!(option_values: values, sku: "#{product.sku}-#{index}", price: product.price)
    end
  end
end
