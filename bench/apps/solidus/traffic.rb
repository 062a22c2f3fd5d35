# frozen_string_literal: true

module Bench
  module Solidus
    # What is asked of the shop: its storefront, its back office, its API, and now and then a change by the API. The key
    # is the administrator's; what a change changes is in its query.
    module Traffic
      WRITES = 0.04 # of all requests
      KEY = "token=lab"
      WORDS = %w[amber birch delta fjord grove inlet knoll ocean].freeze
      TAXONS = %w[categories brands brands/solidus categories/clothing categories/accessories categories/stickers
                  categories/clothing/caps categories/clothing/t-shirts categories/clothing/hoodies
                  categories/accessories/totes categories/accessories/water-bottles].freeze
      SAMPLES = %w[tote hoodie mug-set winter-hat circle-sticker notebook t-shirt long-sleeve-tee dark-tee
                   canvas-tote-bag cap water-bottle].freeze

      LISTS = %w[orders products users zones tax_categories tax_rates option_types properties taxonomies stock_locations
                 stock_items shipping_methods shipping_categories payment_methods refund_reasons return_reasons
                 reimbursement_types adjustment_reasons store_credit_reasons style_guide dashboards/home].freeze
      FORMS = %w[products/new users/new zones/new tax_categories/new tax_rates/new option_types/new properties/new
                 taxonomies/new stock_locations/new shipping_methods/new shipping_categories/new payment_methods/new
                 refund_reasons/new stores/1/edit zones/1/edit tax_categories/1/edit option_types/1/edit
                 properties/1/edit taxonomies/1/edit stock_locations/1/edit shipping_methods/1/edit].freeze
      PAGES = %w[orders/R%d/edit orders/R%d/cart orders/R%d/customer orders/R%d/adjustments
                 orders/R%d/reimbursements products/item-%d/edit products/item-%d/variants products/item-%d/images
                 products/item-%d/prices products/item-%d/product_properties products/item-%d/stock users/%d/edit
                 users/%d/orders users/%d/items users/%d/store_credits].freeze

      API = %w[products products/%d products/item-%d/variants products/item-%d/images
               products/item-%d/product_properties variants variants/%d orders orders/R%d orders/R%d/payments
               orders/mine option_types option_values zones zones/1 countries countries/1 taxonomies
               taxonomies/1 taxonomies/1/taxons taxons users users/%d users/%d/address_book properties
               properties/1 stock_locations stock_locations/1 stock_locations/1/stock_items
               stock_locations/1/stock_items/%d stores stores/1 config config/money shipments/mine].freeze

      # Each changes something each time.
      CHANGES = %w[products/item-7?product[meta_title]=Item+%d products/item-8?product[price]=%d.5
                   variants/7?variant[weight]=%d properties/1?property[presentation]=Property+%d
                   stock_locations/1/stock_items/%d?stock_item[backorderable]=true&stock_item[count_on_hand]=5
                   stock_locations/1?stock_location[name]=Depot+%d stores/1?store[meta_description]=Shop+%d
                   zones/1?zone[description]=Zone+%d].freeze

      # @return [Array<Array(String, String)>] verb and path; %d stands for the number of a row
      def self.targets = [*store, *office, *api].map { |path| ["GET", path] }

      # @return [Array<Array(String, String)>]
      def self.writes = CHANGES.map { |change| ["PATCH", "/api/#{change}&#{KEY}"] }

      def self.store
        ["/", "/products", "/products?page=2", "/products/item-%d", "/cart", "/cart_link", "/content/cvv",
         *TAXONS.map { |taxon| "/t/#{taxon}" }, *SAMPLES.map { |name| "/products/solidus-#{name}" },
         *WORDS.map { |word| "/products?keywords=#{word}" }, "/orders/R%d?#{KEY}"]
      end

      def self.office
        [*LISTS, *FORMS, *PAGES].map { |page| "/admin/#{page}?#{KEY}" } +
          WORDS.map { |word| "/admin/products?q[with_variant_sku_cont]=#{word}&#{KEY}" } +
          ["/admin/orders?q[s]=total+desc&#{KEY}", "/admin/orders?q[number_cont]=R%d&#{KEY}",
           "/admin/users?q[email_cont]=%d&#{KEY}"]
      end

      def self.api
        API.map { |path| "/api/#{path}?per_page=10&#{KEY}" } +
          WORDS.map { |word| "/api/products?q[name_cont]=#{word}&per_page=10&#{KEY}" }
      end
      private_class_method :store, :office, :api
    end
  end
end
