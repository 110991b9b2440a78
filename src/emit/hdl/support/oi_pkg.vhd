-- oi_pkg.vhd: what the instructions of a graph mean, on vectors of bits.
--
-- An element is a signed or unsigned vector of its own width; a truth is a boolean. Sums and products
-- wrap modulo 2^width, division by zero gives 0, and the lowest value divided by -1 wraps to itself.
library ieee;
use ieee.std_logic_1164.all;
use ieee.numeric_std.all;

package oi_pkg is

  subtype oi_i1 is signed(0 downto 0);
  subtype oi_i2 is signed(1 downto 0);
  subtype oi_i4 is signed(3 downto 0);
  subtype oi_i8 is signed(7 downto 0);
  subtype oi_i16 is signed(15 downto 0);
  subtype oi_i32 is signed(31 downto 0);
  subtype oi_i64 is signed(63 downto 0);
  subtype oi_word8 is std_logic_vector(7 downto 0);
  subtype oi_word16 is std_logic_vector(15 downto 0);
  subtype oi_word32 is std_logic_vector(31 downto 0);
  subtype oi_word64 is std_logic_vector(63 downto 0);
  subtype oi_t1 is signed(1 downto 0);
  subtype oi_t2 is signed(1 downto 0);
  subtype oi_u1 is unsigned(0 downto 0);
  subtype oi_u2 is unsigned(1 downto 0);
  subtype oi_u4 is unsigned(3 downto 0);
  subtype oi_u8 is unsigned(7 downto 0);
  subtype oi_u16 is unsigned(15 downto 0);
  subtype oi_u32 is unsigned(31 downto 0);
  subtype oi_u64 is unsigned(63 downto 0);
  subtype oi_bitset is unsigned(7 downto 0);

  constant oi_lowest_i1  : oi_i1 := (0 => '1', others => '0');
  constant oi_highest_i1 : oi_i1 := (0 => '0', others => '1');
  constant oi_lowest_i2  : oi_i2 := (1 => '1', others => '0');
  constant oi_highest_i2 : oi_i2 := (1 => '0', others => '1');
  constant oi_lowest_i4  : oi_i4 := (3 => '1', others => '0');
  constant oi_highest_i4 : oi_i4 := (3 => '0', others => '1');
  constant oi_lowest_i8  : oi_i8 := (7 => '1', others => '0');
  constant oi_highest_i8 : oi_i8 := (7 => '0', others => '1');
  constant oi_lowest_i16  : oi_i16 := (15 => '1', others => '0');
  constant oi_highest_i16 : oi_i16 := (15 => '0', others => '1');
  constant oi_lowest_i32  : oi_i32 := (31 => '1', others => '0');
  constant oi_highest_i32 : oi_i32 := (31 => '0', others => '1');
  constant oi_lowest_i64  : oi_i64 := (63 => '1', others => '0');
  constant oi_highest_i64 : oi_i64 := (63 => '0', others => '1');
  constant oi_lowest_u1  : oi_u1 := (others => '0');
  constant oi_highest_u1 : oi_u1 := (others => '1');
  constant oi_lowest_u2  : oi_u2 := (others => '0');
  constant oi_highest_u2 : oi_u2 := (others => '1');
  constant oi_lowest_u4  : oi_u4 := (others => '0');
  constant oi_highest_u4 : oi_u4 := (others => '1');
  constant oi_lowest_u8  : oi_u8 := (others => '0');
  constant oi_highest_u8 : oi_u8 := (others => '1');
  constant oi_lowest_u16  : oi_u16 := (others => '0');
  constant oi_highest_u16 : oi_u16 := (others => '1');
  constant oi_lowest_u32  : oi_u32 := (others => '0');
  constant oi_highest_u32 : oi_u32 := (others => '1');
  constant oi_lowest_u64  : oi_u64 := (others => '0');
  constant oi_highest_u64 : oi_u64 := (others => '1');
  constant oi_lowest_bitset  : oi_bitset := (others => '0');
  constant oi_highest_bitset : oi_bitset := (others => '1');

  -- choice
  function oi_select(c : boolean; a, b : signed) return signed;
  function oi_select(c : boolean; a, b : unsigned) return unsigned;
  function oi_select(c : boolean; a, b : boolean) return boolean;
  function oi_select(c : boolean; a, b : std_logic_vector) return std_logic_vector;
  function oi_max(a, b : signed) return signed;
  function oi_max(a, b : unsigned) return unsigned;
  function oi_min(a, b : signed) return signed;
  function oi_min(a, b : unsigned) return unsigned;

  -- arithmetic
  function oi_mul(a, b : signed) return signed;
  function oi_mul(a, b : unsigned) return unsigned;
  function oi_neg(a : signed) return signed;
  function oi_neg(a : unsigned) return unsigned;
  function oi_abs(a : signed) return signed;
  function oi_abs(a : unsigned) return unsigned;
  function oi_idiv(a, b : signed) return signed;
  function oi_idiv(a, b : unsigned) return unsigned;
  function oi_irem(a, b : signed) return signed;
  function oi_irem(a, b : unsigned) return unsigned;
  function oi_floor_div(a, b : signed) return signed;
  function oi_floor_div(a, b : unsigned) return unsigned;
  function oi_shl(a, n : signed) return signed;
  function oi_shl(a : unsigned; n : signed) return unsigned;
  function oi_shr(a, n : signed) return signed;
  function oi_shr(a : unsigned; n : signed) return unsigned;
  function oi_pow(a, b : signed) return signed;
  function oi_pow(a, b : unsigned) return unsigned;
  function oi_popcount(a : signed) return oi_u8;
  function oi_popcount(a : unsigned) return oi_u8;

  -- conversion: sat to the nearest limit, wrap modulo 2^width
  function oi_truth(a : boolean) return unsigned;
  function oi_to_i64(a : signed) return oi_i64;
  function oi_to_i64(a : unsigned) return oi_i64;
  function oi_sat_i1(a : signed) return oi_i1;
  function oi_sat_i1(a : unsigned) return oi_i1;
  function oi_wrap_i1(a : signed) return oi_i1;
  function oi_wrap_i1(a : unsigned) return oi_i1;
  function oi_sat_i2(a : signed) return oi_i2;
  function oi_sat_i2(a : unsigned) return oi_i2;
  function oi_wrap_i2(a : signed) return oi_i2;
  function oi_wrap_i2(a : unsigned) return oi_i2;
  function oi_sat_i4(a : signed) return oi_i4;
  function oi_sat_i4(a : unsigned) return oi_i4;
  function oi_wrap_i4(a : signed) return oi_i4;
  function oi_wrap_i4(a : unsigned) return oi_i4;
  function oi_sat_i8(a : signed) return oi_i8;
  function oi_sat_i8(a : unsigned) return oi_i8;
  function oi_wrap_i8(a : signed) return oi_i8;
  function oi_wrap_i8(a : unsigned) return oi_i8;
  function oi_sat_i16(a : signed) return oi_i16;
  function oi_sat_i16(a : unsigned) return oi_i16;
  function oi_wrap_i16(a : signed) return oi_i16;
  function oi_wrap_i16(a : unsigned) return oi_i16;
  function oi_sat_i32(a : signed) return oi_i32;
  function oi_sat_i32(a : unsigned) return oi_i32;
  function oi_wrap_i32(a : signed) return oi_i32;
  function oi_wrap_i32(a : unsigned) return oi_i32;
  function oi_sat_i64(a : signed) return oi_i64;
  function oi_sat_i64(a : unsigned) return oi_i64;
  function oi_wrap_i64(a : signed) return oi_i64;
  function oi_wrap_i64(a : unsigned) return oi_i64;
  function oi_sat_t1(a : signed) return oi_t1;
  function oi_sat_t1(a : unsigned) return oi_t1;
  function oi_wrap_t1(a : signed) return oi_t1;
  function oi_wrap_t1(a : unsigned) return oi_t1;
  function oi_sat_t2(a : signed) return oi_t2;
  function oi_sat_t2(a : unsigned) return oi_t2;
  function oi_wrap_t2(a : signed) return oi_t2;
  function oi_wrap_t2(a : unsigned) return oi_t2;
  function oi_sat_u1(a : signed) return oi_u1;
  function oi_sat_u1(a : unsigned) return oi_u1;
  function oi_wrap_u1(a : signed) return oi_u1;
  function oi_wrap_u1(a : unsigned) return oi_u1;
  function oi_sat_u2(a : signed) return oi_u2;
  function oi_sat_u2(a : unsigned) return oi_u2;
  function oi_wrap_u2(a : signed) return oi_u2;
  function oi_wrap_u2(a : unsigned) return oi_u2;
  function oi_sat_u4(a : signed) return oi_u4;
  function oi_sat_u4(a : unsigned) return oi_u4;
  function oi_wrap_u4(a : signed) return oi_u4;
  function oi_wrap_u4(a : unsigned) return oi_u4;
  function oi_sat_u8(a : signed) return oi_u8;
  function oi_sat_u8(a : unsigned) return oi_u8;
  function oi_wrap_u8(a : signed) return oi_u8;
  function oi_wrap_u8(a : unsigned) return oi_u8;
  function oi_sat_u16(a : signed) return oi_u16;
  function oi_sat_u16(a : unsigned) return oi_u16;
  function oi_wrap_u16(a : signed) return oi_u16;
  function oi_wrap_u16(a : unsigned) return oi_u16;
  function oi_sat_u32(a : signed) return oi_u32;
  function oi_sat_u32(a : unsigned) return oi_u32;
  function oi_wrap_u32(a : signed) return oi_u32;
  function oi_wrap_u32(a : unsigned) return oi_u32;
  function oi_sat_u64(a : signed) return oi_u64;
  function oi_sat_u64(a : unsigned) return oi_u64;
  function oi_wrap_u64(a : signed) return oi_u64;
  function oi_wrap_u64(a : unsigned) return oi_u64;
  function oi_sat_bitset(a : signed) return oi_bitset;
  function oi_sat_bitset(a : unsigned) return oi_bitset;
  function oi_wrap_bitset(a : signed) return oi_bitset;
  function oi_wrap_bitset(a : unsigned) return oi_bitset;

  -- elements of memory
  function oi_is_true(a : std_logic_vector) return boolean;
  function oi_bits(a : boolean) return std_logic_vector;
  function oi_value_t1(a : std_logic_vector) return oi_t1;
  function oi_value_t2(a : std_logic_vector) return oi_t2;
  function oi_bits_t1(a : oi_t1) return std_logic_vector;

  -- positions
  function oi_log2(n : positive) return positive; -- bits that count to n - 1, at least 1
  -- an address, or 0 while there is none: an index that is out of range gives no place
  function oi_address(is_there : boolean; at : integer; bits : positive) return unsigned;
  -- an index found in data: a negative one counts from the end; -1 when it is out of range
  function oi_position(a : signed; n : integer) return integer;
  function oi_position(a : unsigned; n : integer) return integer;
  -- coordinates outside first ... last - 1 come back into it
  function oi_bend_edge(v, first, last : integer) return integer;
  function oi_bend_wrap(v, first, last : integer) return integer;
  function oi_bend_reflect(v, first, last : integer) return integer;
  -- the end of a slice: a negative one counts from the size
  function oi_end(last, size : integer) return integer;
  function oi_floor_mod(a, b : integer) return integer;
  function oi_floor_quotient(a, b : integer) return integer;
  function oi_times(a, b : integer) return integer; -- clamped
  function oi_number(a : signed) return integer;    -- clamped
  function oi_number(a : unsigned) return integer;
  function oi_bit(a : boolean) return std_logic;
  function oi_lesser(a, b : integer) return integer;
  function oi_greater(a, b : integer) return integer;
end package;

package body oi_pkg is

  -- choice

  function oi_select(c : boolean; a, b : signed) return signed is
  begin
    if c then
      return a;
    end if;
    return b;
  end function;

  function oi_select(c : boolean; a, b : unsigned) return unsigned is
  begin
    if c then
      return a;
    end if;
    return b;
  end function;

  function oi_select(c : boolean; a, b : boolean) return boolean is
  begin
    if c then
      return a;
    end if;
    return b;
  end function;

  function oi_select(c : boolean; a, b : std_logic_vector) return std_logic_vector is
  begin
    if c then
      return a;
    end if;
    return b;
  end function;

  function oi_max(a, b : signed) return signed is
  begin
    return oi_select(a > b, a, b);
  end function;

  function oi_max(a, b : unsigned) return unsigned is
  begin
    return oi_select(a > b, a, b);
  end function;

  function oi_min(a, b : signed) return signed is
  begin
    return oi_select(a < b, a, b);
  end function;

  function oi_min(a, b : unsigned) return unsigned is
  begin
    return oi_select(a < b, a, b);
  end function;

  -- arithmetic

  -- the low bits of the product
  function oi_mul(a, b : signed) return signed is
    variable p : signed(a'length + b'length - 1 downto 0);
  begin
    p := a * b;
    return p(a'length - 1 downto 0);
  end function;

  -- the low bits of the product
  function oi_mul(a, b : unsigned) return unsigned is
    variable p : unsigned(a'length + b'length - 1 downto 0);
  begin
    p := a * b;
    return p(a'length - 1 downto 0);
  end function;

  function oi_neg(a : signed) return signed is
  begin
    return -a;
  end function;

  function oi_neg(a : unsigned) return unsigned is
  begin
    return unsigned(-signed(a));
  end function;

  function oi_abs(a : signed) return signed is
  begin
    return oi_select(a < 0, -a, a);
  end function;

  function oi_abs(a : unsigned) return unsigned is
  begin
    return a;
  end function;

  function oi_idiv(a, b : signed) return signed is
  begin
    if b = 0 then
      return to_signed(0, a'length);
    end if;
    return resize(a / b, a'length);
  end function;

  function oi_idiv(a, b : unsigned) return unsigned is
  begin
    if b = 0 then
      return to_unsigned(0, a'length);
    end if;
    return a / b;
  end function;

  function oi_irem(a, b : signed) return signed is
  begin
    if b = 0 or b = -1 then
      return to_signed(0, a'length);
    end if;
    return a rem b;
  end function;

  function oi_irem(a, b : unsigned) return unsigned is
  begin
    if b = 0 then
      return to_unsigned(0, a'length);
    end if;
    return a rem b;
  end function;

  function oi_floor_div(a, b : signed) return signed is
    variable rest : signed(a'length - 1 downto 0);
    variable quotient : signed(a'length - 1 downto 0);
  begin
    rest := oi_irem(a, b);
    quotient := oi_idiv(a, b);
    if rest /= 0 and (rest < 0) /= (b < 0) then
      return quotient - 1;
    end if;
    return quotient;
  end function;

  function oi_floor_div(a, b : unsigned) return unsigned is
  begin
    return oi_idiv(a, b);
  end function;

  -- A count outside the width shifts everything out. Bit by bit, as ghdl --synth compares no constants.
  function is_outside(n : signed; width : positive) return boolean is
    variable v : signed(n'length - 1 downto 0);
  begin
    v := n;
    for i in v'range loop
      if i >= 7 and v(i) = '1' then
        return true;
      end if;
    end loop;
    return to_integer(unsigned(v(6 downto 0))) >= width;
  end function;

  function oi_shl(a, n : signed) return signed is
  begin
    if is_outside(n, a'length) then
      return to_signed(0, a'length);
    end if;
    return shift_left(a, to_integer(unsigned(n(6 downto 0))));
  end function;

  function oi_shl(a : unsigned; n : signed) return unsigned is
  begin
    if is_outside(n, a'length) then
      return to_unsigned(0, a'length);
    end if;
    return shift_left(a, to_integer(unsigned(n(6 downto 0))));
  end function;

  -- of a signed value with copies of its sign before it: ghdl --synth writes signed shifts as unsigned ones
  function oi_shr(a, n : signed) return signed is
    variable v : unsigned(2 * a'length - 1 downto 0);
  begin
    v := unsigned(resize(a, 2 * a'length));
    if is_outside(n, a'length) then
      return signed(v(2 * a'length - 1 downto a'length));
    end if;
    v := shift_right(v, to_integer(unsigned(n(6 downto 0))));
    return signed(v(a'length - 1 downto 0));
  end function;

  function oi_shr(a : unsigned; n : signed) return unsigned is
  begin
    if is_outside(n, a'length) then
      return to_unsigned(0, a'length);
    end if;
    return shift_right(a, to_integer(unsigned(n(6 downto 0))));
  end function;

  function oi_pow(a, b : unsigned) return unsigned is
    variable base, result : unsigned(a'length - 1 downto 0);
    variable left : unsigned(b'length - 1 downto 0);
  begin
    base := a;
    left := b;
    result := to_unsigned(1, a'length);
    for i in 0 to b'length - 1 loop
      result := oi_select(left(i) = '1', oi_mul(result, base), result);
      base := oi_mul(base, base);
    end loop;
    return result;
  end function;

  -- a negative exponent leaves nothing, but of 1 and -1
  function oi_pow(a, b : signed) return signed is
  begin
    if b >= 0 then
      return signed(oi_pow(unsigned(a), unsigned(b)));
    elsif a = 1 or (a = -1 and b(b'low) = '0') then
      return to_signed(1, a'length);
    elsif a = -1 then
      return to_signed(-1, a'length);
    end if;
    return to_signed(0, a'length);
  end function;

  function oi_popcount(a : unsigned) return oi_u8 is
    variable n : oi_u8;
  begin
    n := (others => '0');
    for i in a'range loop
      if a(i) = '1' then
        n := n + 1;
      end if;
    end loop;
    return n;
  end function;

  function oi_popcount(a : signed) return oi_u8 is
  begin
    return oi_popcount(unsigned(a));
  end function;

  -- conversion

  function oi_truth(a : boolean) return unsigned is
  begin
    return oi_select(a, to_unsigned(1, 1), to_unsigned(0, 1));
  end function;

  function oi_to_i64(a : signed) return oi_i64 is
  begin
    return resize(a, 64);
  end function;

  -- the low bits
  function cut(a : std_logic_vector; bits : positive; sign : std_logic) return std_logic_vector is
    variable r : std_logic_vector(bits - 1 downto 0);
    variable v : std_logic_vector(a'length - 1 downto 0);
  begin
    v := a;
    for i in r'range loop
      if i < v'length then
        r(i) := v(i);
      else
        r(i) := sign;
      end if;
    end loop;
    return r;
  end function;

  function oi_to_i64(a : unsigned) return oi_i64 is
  begin
    return signed(cut(std_logic_vector(a), 64, '0'));
  end function;

  function wrapped(a : signed; bits : positive) return std_logic_vector is
  begin
    return cut(std_logic_vector(a), bits, a(a'left));
  end function;

  function wrapped(a : unsigned; bits : positive) return std_logic_vector is
  begin
    return cut(std_logic_vector(a), bits, '0');
  end function;

  -- to the nearest limit: what is cut off must be copies of the sign
  function sat_signed(a : signed; bits : positive) return signed is
    variable v : signed(a'length - 1 downto 0);
    variable r : signed(bits - 1 downto 0);
  begin
    v := a;
    r := signed(wrapped(v, bits));
    if v'length > bits then
      for i in bits to v'length - 1 loop
        if v(i) /= r(bits - 1) then
          r := (others => not v(v'left));
          r(bits - 1) := v(v'left);
          return r;
        end if;
      end loop;
    end if;
    return r;
  end function;

  function sat_unsigned(a : unsigned; bits : positive) return unsigned is
    variable v : unsigned(a'length - 1 downto 0);
    variable r : unsigned(bits - 1 downto 0);
  begin
    v := a;
    r := unsigned(wrapped(v, bits));
    if v'length > bits then
      for i in bits to v'length - 1 loop
        if v(i) = '1' then
          r := (others => '1');
        end if;
      end loop;
    end if;
    return r;
  end function;

  function sat_signed(a : unsigned; bits : positive) return signed is
  begin
    return sat_signed(signed('0' & a), bits);
  end function;

  function sat_unsigned(a : signed; bits : positive) return unsigned is
  begin
    if a < 0 then
      return to_unsigned(0, bits);
    end if;
    return sat_unsigned(unsigned(a), bits);
  end function;

  function oi_sat_i1(a : signed) return oi_i1 is
  begin
    return sat_signed(a, 1);
  end function;

  function oi_wrap_i1(a : signed) return oi_i1 is
  begin
    return signed(wrapped(a, 1));
  end function;

  function oi_sat_i1(a : unsigned) return oi_i1 is
  begin
    return sat_signed(a, 1);
  end function;

  function oi_wrap_i1(a : unsigned) return oi_i1 is
  begin
    return signed(wrapped(a, 1));
  end function;

  function oi_sat_i2(a : signed) return oi_i2 is
  begin
    return sat_signed(a, 2);
  end function;

  function oi_wrap_i2(a : signed) return oi_i2 is
  begin
    return signed(wrapped(a, 2));
  end function;

  function oi_sat_i2(a : unsigned) return oi_i2 is
  begin
    return sat_signed(a, 2);
  end function;

  function oi_wrap_i2(a : unsigned) return oi_i2 is
  begin
    return signed(wrapped(a, 2));
  end function;

  function oi_sat_i4(a : signed) return oi_i4 is
  begin
    return sat_signed(a, 4);
  end function;

  function oi_wrap_i4(a : signed) return oi_i4 is
  begin
    return signed(wrapped(a, 4));
  end function;

  function oi_sat_i4(a : unsigned) return oi_i4 is
  begin
    return sat_signed(a, 4);
  end function;

  function oi_wrap_i4(a : unsigned) return oi_i4 is
  begin
    return signed(wrapped(a, 4));
  end function;

  function oi_sat_i8(a : signed) return oi_i8 is
  begin
    return sat_signed(a, 8);
  end function;

  function oi_wrap_i8(a : signed) return oi_i8 is
  begin
    return signed(wrapped(a, 8));
  end function;

  function oi_sat_i8(a : unsigned) return oi_i8 is
  begin
    return sat_signed(a, 8);
  end function;

  function oi_wrap_i8(a : unsigned) return oi_i8 is
  begin
    return signed(wrapped(a, 8));
  end function;

  function oi_sat_i16(a : signed) return oi_i16 is
  begin
    return sat_signed(a, 16);
  end function;

  function oi_wrap_i16(a : signed) return oi_i16 is
  begin
    return signed(wrapped(a, 16));
  end function;

  function oi_sat_i16(a : unsigned) return oi_i16 is
  begin
    return sat_signed(a, 16);
  end function;

  function oi_wrap_i16(a : unsigned) return oi_i16 is
  begin
    return signed(wrapped(a, 16));
  end function;

  function oi_sat_i32(a : signed) return oi_i32 is
  begin
    return sat_signed(a, 32);
  end function;

  function oi_wrap_i32(a : signed) return oi_i32 is
  begin
    return signed(wrapped(a, 32));
  end function;

  function oi_sat_i32(a : unsigned) return oi_i32 is
  begin
    return sat_signed(a, 32);
  end function;

  function oi_wrap_i32(a : unsigned) return oi_i32 is
  begin
    return signed(wrapped(a, 32));
  end function;

  function oi_sat_i64(a : signed) return oi_i64 is
  begin
    return sat_signed(a, 64);
  end function;

  function oi_wrap_i64(a : signed) return oi_i64 is
  begin
    return signed(wrapped(a, 64));
  end function;

  function oi_sat_i64(a : unsigned) return oi_i64 is
  begin
    return sat_signed(a, 64);
  end function;

  function oi_wrap_i64(a : unsigned) return oi_i64 is
  begin
    return signed(wrapped(a, 64));
  end function;

  function oi_sat_u1(a : signed) return oi_u1 is
  begin
    return sat_unsigned(a, 1);
  end function;

  function oi_wrap_u1(a : signed) return oi_u1 is
  begin
    return unsigned(wrapped(a, 1));
  end function;

  function oi_sat_u1(a : unsigned) return oi_u1 is
  begin
    return sat_unsigned(a, 1);
  end function;

  function oi_wrap_u1(a : unsigned) return oi_u1 is
  begin
    return unsigned(wrapped(a, 1));
  end function;

  function oi_sat_u2(a : signed) return oi_u2 is
  begin
    return sat_unsigned(a, 2);
  end function;

  function oi_wrap_u2(a : signed) return oi_u2 is
  begin
    return unsigned(wrapped(a, 2));
  end function;

  function oi_sat_u2(a : unsigned) return oi_u2 is
  begin
    return sat_unsigned(a, 2);
  end function;

  function oi_wrap_u2(a : unsigned) return oi_u2 is
  begin
    return unsigned(wrapped(a, 2));
  end function;

  function oi_sat_u4(a : signed) return oi_u4 is
  begin
    return sat_unsigned(a, 4);
  end function;

  function oi_wrap_u4(a : signed) return oi_u4 is
  begin
    return unsigned(wrapped(a, 4));
  end function;

  function oi_sat_u4(a : unsigned) return oi_u4 is
  begin
    return sat_unsigned(a, 4);
  end function;

  function oi_wrap_u4(a : unsigned) return oi_u4 is
  begin
    return unsigned(wrapped(a, 4));
  end function;

  function oi_sat_u8(a : signed) return oi_u8 is
  begin
    return sat_unsigned(a, 8);
  end function;

  function oi_wrap_u8(a : signed) return oi_u8 is
  begin
    return unsigned(wrapped(a, 8));
  end function;

  function oi_sat_u8(a : unsigned) return oi_u8 is
  begin
    return sat_unsigned(a, 8);
  end function;

  function oi_wrap_u8(a : unsigned) return oi_u8 is
  begin
    return unsigned(wrapped(a, 8));
  end function;

  function oi_sat_u16(a : signed) return oi_u16 is
  begin
    return sat_unsigned(a, 16);
  end function;

  function oi_wrap_u16(a : signed) return oi_u16 is
  begin
    return unsigned(wrapped(a, 16));
  end function;

  function oi_sat_u16(a : unsigned) return oi_u16 is
  begin
    return sat_unsigned(a, 16);
  end function;

  function oi_wrap_u16(a : unsigned) return oi_u16 is
  begin
    return unsigned(wrapped(a, 16));
  end function;

  function oi_sat_u32(a : signed) return oi_u32 is
  begin
    return sat_unsigned(a, 32);
  end function;

  function oi_wrap_u32(a : signed) return oi_u32 is
  begin
    return unsigned(wrapped(a, 32));
  end function;

  function oi_sat_u32(a : unsigned) return oi_u32 is
  begin
    return sat_unsigned(a, 32);
  end function;

  function oi_wrap_u32(a : unsigned) return oi_u32 is
  begin
    return unsigned(wrapped(a, 32));
  end function;

  function oi_sat_u64(a : signed) return oi_u64 is
  begin
    return sat_unsigned(a, 64);
  end function;

  function oi_wrap_u64(a : signed) return oi_u64 is
  begin
    return unsigned(wrapped(a, 64));
  end function;

  function oi_sat_u64(a : unsigned) return oi_u64 is
  begin
    return sat_unsigned(a, 64);
  end function;

  function oi_wrap_u64(a : unsigned) return oi_u64 is
  begin
    return unsigned(wrapped(a, 64));
  end function;

  function oi_sat_bitset(a : signed) return oi_bitset is
  begin
    return sat_unsigned(a, 8);
  end function;

  function oi_wrap_bitset(a : signed) return oi_bitset is
  begin
    return unsigned(wrapped(a, 8));
  end function;

  function oi_sat_bitset(a : unsigned) return oi_bitset is
  begin
    return sat_unsigned(a, 8);
  end function;

  function oi_wrap_bitset(a : unsigned) return oi_bitset is
  begin
    return unsigned(wrapped(a, 8));
  end function;

  -- t1 takes the sign, of 0 it is +1; t2 the nearest of -1, 0, 1

  function oi_sat_t1(a : signed) return oi_t1 is
  begin
    return oi_select(a < 0, to_signed(-1, 2), to_signed(1, 2));
  end function;

  function oi_sat_t2(a : signed) return oi_t2 is
  begin
    return oi_select(a < 0, to_signed(-1, 2), oi_select(a = 0, to_signed(0, 2), to_signed(1, 2)));
  end function;

  function oi_sat_t1(a : unsigned) return oi_t1 is
  begin
    return to_signed(1, 2);
  end function;

  function oi_sat_t2(a : unsigned) return oi_t2 is
  begin
    return oi_select(a = 0, to_signed(0, 2), to_signed(1, 2));
  end function;

  function oi_wrap_t1(a : signed) return oi_t1 is
  begin
    return oi_sat_t1(a);
  end function;

  function oi_wrap_t1(a : unsigned) return oi_t1 is
  begin
    return oi_sat_t1(a);
  end function;

  function oi_wrap_t2(a : signed) return oi_t2 is
  begin
    return oi_sat_t2(a);
  end function;

  function oi_wrap_t2(a : unsigned) return oi_t2 is
  begin
    return oi_sat_t2(a);
  end function;

  -- elements of memory

  function oi_is_true(a : std_logic_vector) return boolean is
  begin
    return unsigned(a) /= 0;
  end function;

  function oi_bits(a : boolean) return std_logic_vector is
  begin
    return oi_select(a, std_logic_vector'("00000001"), std_logic_vector'("00000000"));
  end function;

  function oi_value_t1(a : std_logic_vector) return oi_t1 is
  begin
    return oi_select(unsigned(a) = 0, to_signed(-1, 2), to_signed(1, 2));
  end function;

  function oi_value_t2(a : std_logic_vector) return oi_t2 is
  begin
    return oi_select(unsigned(a) = 2, to_signed(-1, 2), signed(a));
  end function;

  function oi_bits_t1(a : oi_t1) return std_logic_vector is
  begin
    return oi_select(a < 0, std_logic_vector'("0"), std_logic_vector'("1"));
  end function;

  -- positions

  function oi_log2(n : positive) return positive is
    variable bits : positive := 1;
  begin
    while 2 ** bits < n loop
      bits := bits + 1;
    end loop;
    return bits;
  end function;

  function oi_address(is_there : boolean; at : integer; bits : positive) return unsigned is
  begin
    if is_there and at >= 0 then
      return to_unsigned(at, bits);
    end if;
    return to_unsigned(0, bits);
  end function;

  function oi_position(a : signed; n : integer) return integer is
    variable v : oi_i64;
  begin
    v := resize(a, 64);
    v := oi_select(v < 0, v + n, v);
    if v < 0 or v >= n then
      return -1;
    end if;
    return to_integer(v(30 downto 0));
  end function;

  function oi_position(a : unsigned; n : integer) return integer is
    variable v : oi_u64;
  begin
    v := resize(a, 64);
    if v >= n then
      return -1;
    end if;
    return to_integer(v(30 downto 0));
  end function;

  function oi_bend_edge(v, first, last : integer) return integer is
  begin
    return oi_greater(first, oi_lesser(v, last - 1));
  end function;

  function oi_bend_wrap(v, first, last : integer) return integer is
  begin
    return first + (v - first) mod (last - first);
  end function;

  -- mirrored at the first and the last, which are not repeated
  function oi_bend_reflect(v, first, last : integer) return integer is
    variable n, period, r : integer;
  begin
    n := last - first;
    period := oi_greater(2 * (n - 1), 1);
    r := (v - first) mod period;
    if r < n then
      return first + r;
    end if;
    return first + period - r;
  end function;

  function oi_end(last, size : integer) return integer is
  begin
    if last < 0 then
      return last + size;
    end if;
    return last;
  end function;

  function oi_floor_mod(a, b : integer) return integer is
  begin
    if b = 0 or b = -1 then
      return 0;
    end if;
    return a mod b;
  end function;

  function oi_floor_quotient(a, b : integer) return integer is
  begin
    if b = 0 then
      return 0;
    end if;
    return (a - oi_floor_mod(a, b)) / b;
  end function;

  function oi_number(a : signed) return integer is
    variable v : oi_i64;
  begin
    v := resize(a, 64);
    if v > 2 ** 29 then
      return 2 ** 29;
    elsif v < -(2 ** 29) then
      return -(2 ** 29);
    end if;
    return to_integer(v(30 downto 0));
  end function;

  function oi_number(a : unsigned) return integer is
  begin
    return oi_number(sat_signed(a, 64));
  end function;

  function oi_times(a, b : integer) return integer is
  begin
    return oi_number(to_signed(a, 32) * to_signed(b, 32));
  end function;

  function oi_bit(a : boolean) return std_logic is
  begin
    if a then
      return '1';
    end if;
    return '0';
  end function;

  function oi_lesser(a, b : integer) return integer is
  begin
    if a < b then
      return a;
    end if;
    return b;
  end function;

  function oi_greater(a, b : integer) return integer is
  begin
    if a > b then
      return a;
    end if;
    return b;
  end function;
end package body;
