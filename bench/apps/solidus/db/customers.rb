# frozen_string_literal: true

# The people: an administrator, whose key to the API is "lab", and customers with addresses and orders.
class Customers
  CUSTOMERS = 60
  ORDERS = 80
  KEY = "lab"

  def initialize(random)
    @random = random
    @address = Spree::Address.first
    @variants = Spree::Variant.where(is_master: true).order(:id).to_a
  end

  def fill
    administrator
    customers = (1..CUSTOMERS).map { |number| customer(number) }
    (1..ORDERS).each { |number| order(number, customers.sample(random: @random)) }
  end

  private

  def administrator
    user = Spree.user_class.create!(email: "admin@example.com", spree_api_key: KEY)
    user.spree_roles << Spree::Role.find_by!(name: "admin")
  end

  def customer(number)
    Spree.user_class.create!(email: "customer#{number}@example.com", spree_api_key: "customer-#{number}")
  end

  def address(number)
    @address.dup.tap { |copy| copy.update!(name: "Customer #{number}", address1: "#{number} Main Street") }
  end

  # Three of four are paid and complete, the others are carts.
  def order(number, customer)
    order = Spree::Order.create!(number: "R#{number}", user: customer, email: customer.email, store: Spree::Store.first)
    order.update!(ship_address: address(number), bill_address: address(number))
    @variants.sample(@random.rand(1..4), random: @random).each do |variant|
      order.contents.add(variant, @random.rand(1..3))
    end
    complete(order) unless (number % 4).zero?
  end

  def complete(order)
    order.next! until order.payment?
    order.payments.create!(amount: order.total, payment_method: Spree::PaymentMethod::Check.first!)
    order.next! until order.can_complete?
    order.complete!
  end
end
